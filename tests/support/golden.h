// Golden values: files that PyTorch wrote (tests/golden/make_*.py), and calls compared with them.
#pragma once

#include "support/op_table.h"

#include "norma/core/safetensors.h"

#include <map>
#include <string>

namespace norma::test {

/// The tensors of tests/golden/`file`.
const std::map<std::string, Tensor>& golden(const std::string& file);

/// Runs `function` on the inputs of `name` in `file` and compares outputs and gradients: float64 to
/// 1e-10 relative, float32 to 1e-5, both relative to the largest value of the tensor.
void check_golden_op(const std::string& name, const OpFunction& function,
                     const std::string& file = "ops.safetensors");

/// Whether max |actual - expected| <= tolerance * max |expected|.
bool close_to_largest(const Tensor& actual, const Tensor& expected, double tolerance);

}  // namespace norma::test
