// Scalar: a plain C++ number beside a tensor. It remembers whether it was an integer, because
// promotion asks.
#pragma once

#include "norma/core/tensor.h"

#include <concepts>
#include <type_traits>

namespace norma {

/// A number as an operand: `x * 2`, `1.0 - x`. Integers beyond 2^53 are rounded.
class Scalar {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> Scalar(T value)  // NOLINT: converts like a number
      : value_(static_cast<double>(value)), integral_(std::is_integral_v<T>) {}
  double value() const { return value_; }
  bool is_integral() const { return integral_; }

 private:
  double value_;
  bool integral_;
};

/// The dtype in which an operation on both runs, as torch.result_type: promote_types, but a 0-d
/// tensor changes the dtype of a tensor with dimensions only when it is of a higher category (bool
/// < integer < floating point).
DType result_type(const Tensor& a, const Tensor& b);
/// A number never changes the dtype within its category: float tensors keep their dtype; a
/// fractional number (one written as float or double) with an integer tensor gives float32, an
/// integer with a bool tensor int64.
DType result_type(const Tensor& a, const Scalar& b);

namespace detail {
/// `factor` as a tensor of `dtype` takes it without being promoted. Throws DTypeError, naming
/// `operation`, for a fraction and an integer or bool tensor: it would be cut off.
Scalar factor_for(DType dtype, double factor, const char* operation);
}  // namespace detail

}  // namespace norma
