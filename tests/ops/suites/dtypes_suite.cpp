// Every operation, forward and backward, on every device, in every dtype and two layouts, against
// its definition in float64 on the CPU.
//
// The reference runs on the inputs as the dtype rounds them, so only the rounding of the operation
// itself is left.
#include "support/catch.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/sanitizers.h"

#include "norma/core/autograd.h"

namespace norma::test {
namespace {

Tolerance default_tolerance(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return {1e-10, 1e-11};
    case DType::float32:
      return {2e-5, 2e-6};
    case DType::float16:
      return {4e-3, 2e-3};
    default:
      return {3e-2, 1.6e-2};  // bfloat16
  }
}

struct Outcome {
  TensorList outputs;
  TensorList gradients;
};

bool wants_grad(const OpEntry& op, const Tensor& tensor) {
  return op.differentiable && tensor.defined() && tensor.is_floating_point();
}

Outcome run(const OpEntry& op, const OpFunction& function, const TensorList& inputs,
            const TensorList& cotangents) {
  Outcome outcome;
  TensorList targets;
  for (const Tensor& input : inputs)
    if (wants_grad(op, input)) targets.push_back(input.requires_grad_());
  outcome.outputs = function(inputs);
  TensorList roots;
  TensorList seeds;
  for (std::size_t i = 0; i < outcome.outputs.size(); ++i) {
    if (!outcome.outputs[i].requires_grad()) continue;
    roots.push_back(outcome.outputs[i]);
    seeds.push_back(on_device(converted(cotangents[i], outcome.outputs[i].dtype()),
                              outcome.outputs[i].device()));
  }
  if (!roots.empty())
    outcome.gradients = grad(roots, targets, {.grad_outputs = seeds, .allow_unused = true});
  return outcome;
}

void compare(const OpEntry& op, const OpSample& sample, const Device& device, DType dtype,
             bool contiguous) {
  const auto custom = op.tolerances.find(dtype);
  if (custom != op.tolerances.end()) CHECK_FALSE(op.reason.empty());
  Tolerance tolerance = custom != op.tolerances.end() ? custom->second : default_tolerance(dtype);
  // Sanitizers keep loops from being vectorized: long sums become one chain, with more rounding.
  if (sanitized && dtype == float32) tolerance.atol *= 10.0;
  TensorList inputs;
  TensorList exact;
  for (const Tensor& input : sample.inputs) {
    const Tensor rounded = converted(input, dtype);
    const Tensor placed = on_device(rounded, device);
    inputs.push_back(contiguous ? placed : noncontiguous(placed));
    exact.push_back(converted(rounded, float64));
  }
  const OpFunction& reference = sample.composite ? sample.composite : sample.run;
  TensorList cotangents;
  for (const Tensor& output : reference(exact))
    cotangents.push_back(converted(converted(random(output.shape(), 77), dtype), float64));
  const Outcome expected = run(op, reference, exact, cotangents);
  const Outcome actual = run(op, sample.run, inputs, cotangents);
  REQUIRE(actual.outputs.size() == expected.outputs.size());
  for (std::size_t i = 0; i < actual.outputs.size(); ++i) {
    INFO("output " << i);
    CHECK(allclose(actual.outputs[i], expected.outputs[i], tolerance));
  }
  REQUIRE(actual.gradients.size() == expected.gradients.size());
  for (std::size_t i = 0; i < actual.gradients.size(); ++i) {
    INFO("gradient " << i);
    REQUIRE(actual.gradients[i].defined());
    CHECK(allclose(actual.gradients[i], expected.gradients[i], tolerance));
    CHECK(actual.gradients[i].dtype() == dtype);
  }
}

}  // namespace

TEST_CASE("every operation agrees with its definition in every dtype", "[suite]") {
  for (const OpEntry& op : op_table())
    for (const OpSample& sample : op.samples) DYNAMIC_SECTION(op.name << ": " << sample.label) {
        for (const Device& device : devices())
          for (const DType dtype : op.dtypes)
            for (const bool contiguous : {true, false}) {
              if (too_long_when_sanitized(sample, dtype)) continue;
              INFO(device.str() << ", " << dtype_name(dtype)
                                << (contiguous ? "" : ", non-contiguous"));
              compare(op, sample, device, dtype, contiguous);
            }
      }
}

}  // namespace norma::test
