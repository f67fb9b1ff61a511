// Which operation a kernel of a family computes. Without the rest of ops, for kernels: nvcc cannot
// compile fmt.
#pragma once

#include <cstdint>

namespace norma {

// clang-format off
enum class UnaryOp : std::uint8_t {
  neg, abs, sign, exp, log, log1p, sqrt, rsqrt, reciprocal, square, sin, cos, tanh, sigmoid, erf,
  relu, gelu, gelu_tanh, silu, softplus, logical_not, isnan, isfinite
};
enum class BinaryOp : std::uint8_t {
  add, sub, mul, div, pow, maximum, minimum, eq, ne, lt, le, gt, ge, logical_and, logical_or
};
enum class ReduceOp : std::uint8_t { sum, prod, amax, amin, any, all };
enum class Activation : std::uint8_t { none, relu, gelu, gelu_tanh, silu };
// clang-format on

}  // namespace norma
