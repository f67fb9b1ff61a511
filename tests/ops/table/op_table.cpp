#include "support/op_table.h"

#include <cstdlib>

namespace norma::test {

namespace {

/// NORMA_TEST_OPS=norm leaves the operations with "norm" in their name: the suites while working on
/// one.
void keep_wanted(OpTable& table) {
  const char* const wanted = std::getenv("NORMA_TEST_OPS");
  if (wanted == nullptr) return;
  std::erase_if(table,
                [&](const OpEntry& op) { return op.name.find(wanted) == std::string::npos; });
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
    keep_wanted(all);
    return all;
  }();
  return table;
}

}  // namespace norma::test
