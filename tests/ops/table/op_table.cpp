#include "support/op_table.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

namespace norma::test {

namespace {

/// NORMA_TEST_OPS=norm,scale leaves the operations with "norm" or "scale" in their name: the suites
/// while working on one.
void keep_wanted(OpTable& table) {
  const char* const wanted = std::getenv("NORMA_TEST_OPS");
  if (wanted == nullptr) return;
  std::vector<std::string> parts;
  std::istringstream list(wanted);
  for (std::string part; std::getline(list, part, ',');) parts.push_back(part);
  std::erase_if(table, [&](const OpEntry& op) {
    return std::none_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return op.name.find(part) != std::string::npos;
    });
  });
}

/// Roundings to the dtype between inputs and results, of operations besides the norms.
void state_roundings(OpTable& table) {
  struct Stored {
    int count;
    const char* because;
  };
  const char* const from_output = "the gradient comes from the output";
  static const std::map<std::string, Stored> roundings = {
      {"pow(scalar, x)", {2, "output, and its product with the gradient"}},
      {"softplus(beta)", {2, "beta x, and the softplus of that, are kernels of their own"}},
      {"var", {3, "the mean, the differences from it and their scale are rounded"}},
      {"std", {3, "the mean, the differences from it and their scale are rounded"}},
      {"prod", {2, "the product of the others is output over input"}},
      {"logsumexp", {2, "the gradient is exp(x - output)"}},
      {"matmul", {1, "gradients of a broadcast matrix are rounded before they are summed"}},
      {"linear", {2, "the value before the activation, and its gradient"}},
      {"scaled_dot_product_attention", {3, "scores, probabilities, and output in the gradient"}},
      {"softmax", {1, from_output}},
      {"log_softmax", {1, from_output}},
      {"cross_entropy", {1, "the loss of each row"}}};
  for (OpEntry& entry : table) {
    const auto found = roundings.find(entry.name);
    if (found == roundings.end()) continue;
    entry.stored = found->second.count;
    entry.stored_because = found->second.because;
  }
}

}  // namespace

const OpTable& op_table() {
  static const OpTable table = [] {
    OpTable all;
    add_elementwise_ops(all);
    add_activation_ops(all);
    add_reduction_ops(all);
    add_view_ops(all);
    add_index_ops(all);
    add_matmul_ops(all);
    add_attention_ops(all);
    add_softmax_ops(all);
    add_loss_ops(all);
    add_norm_ops(all);
    add_random_ops(all);
    state_roundings(all);
    keep_wanted(all);
    return all;
  }();
  return table;
}

}  // namespace norma::test
