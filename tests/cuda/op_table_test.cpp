// What the rows of the op table give on a cuda(0) that has CUDA kernels alone: forward, backward
// and second order. Rows that need a kernel which there is not yet are left out; docs/support.md
// names them.
#include "support/op_table.h"
#include "cuda/device_cases.h"
#include "norma/core/gradcheck.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/reference.h"

namespace norma::test {
namespace {

/// Calls `check(op, sample)` for the samples that finite differences take.
template <class Check>
void for_each_small_sample(const Check& check) {
  for (const OpEntry& op : op_table()) DYNAMIC_SECTION(op.name) {
      const OwnKernelsGuard own;
      for (const OpSample& sample : op.samples) {
        if (sample.large) continue;
        INFO(sample.label);
        try {
          check(op, sample);
        } catch (const NotImplementedError&) {
        }
      }
    }
}

}  // namespace

TEST_CASE("CUDA: every operation agrees with its definition in every dtype") {
  if (!has_device()) return;
  for_each_small_sample([](const OpEntry& op, const OpSample& sample) {
    for (const DType dtype : op.dtypes) {
      const Reference reference(op, sample, dtype);
      for (const Layout layout : {Layout::contiguous, Layout::gaps})
        reference.check(cuda(0), layout);
    }
  });
}

TEST_CASE("CUDA: second-order gradients of every operation agree with finite differences") {
  if (!has_device()) return;
  for_each_small_sample([](const OpEntry& op, const OpSample& sample) {
    if (!op.differentiable || !op.second_order) return;
    TensorList inputs;
    for (const Tensor& input : sample.inputs) {
      inputs.push_back(on_device(converted(input, float64), cuda(0)));
      if (input.defined() && input.is_floating_point()) inputs.back().requires_grad_();
    }
    const auto report =
        gradgradcheck(sample.run, inputs,
                      {.atol = 1e-6, .rtol = 1e-5, .cotangents = 1, .check_noncontiguous = false});
    INFO(report.message);
    CHECK(report.ok);
  });
}

}  // namespace norma::test
