// Golden values: files that PyTorch wrote (tests/golden/make_*.py), and calls compared with them.
#pragma once

#include "support/compare.h"
#include "support/op_table.h"

#include "norma/core/safetensors.h"

#include <map>
#include <string>

namespace norma::test {

/// The tensors of tests/golden/`file`.
const std::map<std::string, Tensor>& golden(const std::string& file);

/// The rule for golden values: each element to 1e-10 (float64) or 1e-5 (float32) of its own size,
/// plus an allowance for elements in which larger terms cancelled: 1e-13 or 1e-6 of the largest.
Comparison equals_golden(const Tensor& actual, const Tensor& expected, DType dtype);

/// Runs `function` on the inputs of `name` in `file` and compares outputs and gradients by
/// equals_golden, in float64 and float32.
void check_golden_op(const std::string& name, const OpFunction& function,
                     const std::string& file = "ops.safetensors");

/// max |actual - expected| <= tolerance * max |expected|: says nothing about small elements.
Comparison close_to_largest(const Tensor& actual, const Tensor& expected, double tolerance);

}  // namespace norma::test
