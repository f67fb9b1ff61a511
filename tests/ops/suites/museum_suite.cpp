// Every norm at the shapes, values and layouts at which norms of other frameworks were wrong.
#include "support/catch.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/reference.h"

#include "norma/ops/elementwise.h"

#include <cmath>
#include <map>

namespace norma::test {
namespace {

bool fits(const OpEntry& op, const Size& size) {
  return op.at_size && (!op.not_at || op.not_at(size).empty());
}

/// Calls `check(op)` for every norm, each in a section.
template <class Check>
void for_each_norm(const Check& check) {
  for (const OpEntry& op : op_table())
    if (op.at_size) DYNAMIC_SECTION(op.name) {
        check(op);
      }
}

/// The first input of `sample` with other values.
OpSample with_input(OpSample sample, const Tensor& x) {
  sample.inputs[0] = x;
  return sample;
}

Tensor with_zero_row(const Tensor& x) {
  const Tensor result = x.clone();
  result.narrow(0, 0, 1).fill_(0.0);
  return result;
}

/// Every row as long, but of one value: its first.
Tensor constant_rows(const Tensor& x) { return x.narrow(-1, 0, 1).expand(x.shape()).contiguous(); }

Tensor equal_rows(const Tensor& x) { return x.narrow(0, 0, 1).expand(x.shape()).contiguous(); }

/// Uniform in [-1, 1], to mean 1e4 and standard deviation 1.
Tensor with_large_mean(const Tensor& x) { return x * std::sqrt(3.0) + 1e4; }

constexpr Size some_sizes[] = {{2, 33}, {33, 255}, {3, 1025}};

}  // namespace

TEST_CASE("every norm has a sample at every size of the museum, or says why not", "[suite]") {
  std::string said;
  for (const OpEntry& op : op_table()) {
    if (!op.is_norm) continue;
    INFO(op.name);
    if (!op.at_size) {
      CHECK_FALSE(op.no_sizes_because.empty());
      said += "\n  " + op.name + ": " + op.no_sizes_because;
      continue;
    }
    std::size_t run = 0;
    std::map<std::string, std::string> reasons;
    for (const Size& size : museum()) {
      INFO(size.label());
      const std::string reason = op.not_at ? op.not_at(size) : "";
      if (!reason.empty()) {
        reasons[reason] += (reasons[reason].empty() ? "" : "; ") + size.label();
        continue;
      }
      const OpSample sample = op.at_size(size);
      REQUIRE_FALSE(sample.inputs.empty());
      CHECK(sample.inputs[0].numel() >= size.rows * size.width);
      if (size.rows * size.width > 0) CHECK(sample.inputs[0].numel() % size.width == 0);
      CHECK(sample.composite);
      ++run;
    }
    CHECK(2 * run > museum().size());  // most of the museum, whatever the reasons
    for (const auto& [reason, where] : reasons)
      said += "\n  " + op.name + ": " + reason + " (" + where + ")";
  }
  if (!said.empty()) WARN("left out of the museum:" << said);
}

TEST_CASE("every norm agrees with its definition at every size of the museum", "[suite][devices]") {
  for_each_norm([](const OpEntry& op) {
    for (const Size& size : museum()) {
      if (!fits(op, size)) continue;
      INFO(size.label());
      const OpSample sample = op.at_size(size);
      const bool is_large = sample.inputs[0].numel() > 100'000;
      for (const DType dtype : op.dtypes) {
        // What float64 and float16 would add at these sizes, they show at the others.
        if (is_large && dtype != float32 && dtype != bfloat16) continue;
        const Reference reference(op, sample, dtype);
        for (const Device& device : devices())
          if (!takes_too_long(device, size.rows * size.width))
            reference.check(device, Layout::contiguous);
      }
    }
  });
}

TEST_CASE("norms of rows with a large mean, constant rows and zero rows", "[suite][devices]") {
  for_each_norm([](const OpEntry& op) {
    for (const Size& size : some_sizes) {
      if (!fits(op, size)) continue;
      INFO(size.label());
      const OpSample usual = op.at_size(size);
      const Tensor& x = usual.inputs[0];
      const std::pair<const char*, Tensor> unusual[] = {{"large mean", with_large_mean(x)},
                                                        {"constant rows", constant_rows(x)},
                                                        {"zero row", with_zero_row(x)}};
      for (const auto& [label, values] : unusual)
        for (const DType dtype : op.dtypes) {
          INFO(label);
          const OpSample sample = with_input(usual, values);
          const Reference reference(op, sample, dtype);
          for (const Device& device : devices())
            if (!takes_too_long(device, size.rows * size.width))
              reference.check(device, Layout::contiguous);
        }
    }
  });
}

TEST_CASE("norms of transposed, expanded and misaligned tensors", "[suite][devices]") {
  for_each_norm([](const OpEntry& op) {
    for (const Size& size : some_sizes) {
      if (!fits(op, size)) continue;
      INFO(size.label());
      const OpSample usual = op.at_size(size);
      const OpSample equal = with_input(usual, equal_rows(usual.inputs[0]));
      for (const DType dtype : op.dtypes) {
        const Reference reference(op, usual, dtype);
        const Reference reference_of_equal_rows(op, equal, dtype, true);
        for (const Device& device : devices()) {
          if (takes_too_long(device, size.rows * size.width)) continue;
          reference.check(device, Layout::transposed);
          reference.check(device, Layout::misaligned);
          reference_of_equal_rows.check(device, Layout::expanded);
        }
      }
    }
  });
}

}  // namespace norma::test
