// Every differentiable operation against finite differences, to first and second order, on every
// device.
#include "support/catch.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/missing_kernels.h"
#include "support/op_table.h"

#include "norma/core/gradcheck.h"

namespace norma::test {
namespace {

TensorList leaves(const TensorList& inputs, const Device& device) {
  TensorList result;
  for (const Tensor& input : inputs) {
    Tensor leaf = on_device(converted(input, float64), device);
    if (leaf.defined() && leaf.is_floating_point()) leaf.requires_grad_();
    result.push_back(leaf);
  }
  return result;
}

template <class Check>
void for_each_differentiable_sample(const Check& check) {
  for (const OpEntry& op : op_table()) {
    if (!op.differentiable) continue;
    for (const OpSample& sample : op.samples) {
      if (sample.large) continue;
      for (const Device& device : devices())
        DYNAMIC_SECTION(op.name << ": " << sample.label << ", " << device.str()) {
          where_implemented(device, [&] { check(op, sample, device); });
        }
    }
  }
}

}  // namespace

TEST_CASE("gradcheck of every operation", "[suite][devices]") {
  for_each_differentiable_sample([](const OpEntry&, const OpSample& sample, const Device& device) {
    const auto report =
        gradcheck(sample.run, leaves(sample.inputs, device), {.atol = 1e-7, .rtol = 1e-6});
    INFO(report.message);
    CHECK(report.ok);
  });
}

TEST_CASE("gradgradcheck of every operation", "[suite][devices][values]") {
  for_each_differentiable_sample([](const OpEntry& op, const OpSample& sample,
                                    const Device& device) {
    if (!op.second_order) {
      CHECK_FALSE(op.no_second_order_because.empty());
      return;
    }
    // A linear operation has no second derivative with respect to its input, but one with respect
    // to the cotangent.
    const auto report =
        gradgradcheck(sample.run, leaves(sample.inputs, device),
                      {.atol = 1e-6, .rtol = 1e-5, .cotangents = 1, .check_noncontiguous = false});
    INFO(report.message);
    CHECK(report.ok);
  });
}

}  // namespace norma::test
