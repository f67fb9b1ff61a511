// Factories: new tensors. Names and defaults as in PyTorch, but for `full`, whose dtype is float32
// whatever the value is. Errors: ShapeError for a negative size, or 2^63 elements and more;
// DeviceError for a device that is not there; DTypeError for random numbers that the dtype does not
// have; AutogradError for requires_grad of integers; OutOfMemoryError.
//
//     Tensor w = randn({128, 64}, {.dtype = float64, .requires_grad = true});
//     Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});
#pragma once

#include "norma/core/tensor.h"

#include <span>

namespace norma {

/// A tensor of `shape` with uninitialised elements, or filled with 0, 1 or `value`; float32 on the
/// CPU unless the options say otherwise.
Tensor empty(const Shape& shape, const TensorOptions& options = {});
Tensor zeros(const Shape& shape, const TensorOptions& options = {});
Tensor ones(const Shape& shape, const TensorOptions& options = {});
Tensor full(const Shape& shape, double value, const TensorOptions& options = {});
/// Shape, dtype and device of `other`.
Tensor empty_like(const Tensor& other);
Tensor zeros_like(const Tensor& other);
Tensor ones_like(const Tensor& other);
Tensor full_like(const Tensor& other, double value);

/// start, start + step, … up to but without `end`; int64 unless the options say otherwise or a
/// value is fractional.
Tensor arange(double start, double end, double step = 1.0, const TensorOptions& options = {});
Tensor arange(double end, const TensorOptions& options = {});
/// `steps` values from `start` to `end`, both included.
Tensor linspace(double start, double end, std::int64_t steps, const TensorOptions& options = {});
/// Ones on the diagonal of an n x n matrix.
Tensor eye(std::int64_t n, const TensorOptions& options = {});

/// Uniform in [0, 1).
Tensor rand(const Shape& shape, const TensorOptions& options = {});
/// Normal with mean 0 and standard deviation 1.
Tensor randn(const Shape& shape, const TensorOptions& options = {});
Tensor rand_like(const Tensor& other);
Tensor randn_like(const Tensor& other);
/// Uniform integers in [low, high); int64.
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
               const TensorOptions& options = {});
/// A random permutation of 0 … n-1; int64.
Tensor randperm(std::int64_t n, const TensorOptions& options = {});

/// A tensor with these values, converted to `options.dtype` (default: the dtype of T).
template <class T>
Tensor from_values(std::span<const T> values, const Shape& shape,
                   const TensorOptions& options = {});
template <class T>
Tensor from_values(const std::vector<T>& values, const Shape& shape,
                   const TensorOptions& options = {}) {
  return from_values(std::span<const T>(values), shape, options);
}

namespace detail {
Tensor tensor_from_doubles(const std::vector<double>& values, const Shape& shape, DType fallback,
                           const TensorOptions& options);

/// Literals of type T: floating-point ones as float32, bools as bool, integers as int64 (and not
/// through double, which holds no int64 above 2^53), unless the options say otherwise.
template <class T>
Tensor tensor_from_literals(const std::vector<T>& values, const Shape& shape,
                            const TensorOptions& options) {
  if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, bool>)
    return tensor_from_doubles({values.begin(), values.end()}, shape,
                               std::is_same_v<T, bool> ? DType::bool_ : DType::float32, options);
  else
    return from_values(std::vector<std::int64_t>(values.begin(), values.end()), shape, options);
}
}  // namespace detail

/// A scalar, vector or matrix from literals: float32 for floating-point literals, int64 for
/// integers, bool for bools.
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(T value, const TensorOptions& options = {}) {
  return detail::tensor_from_literals(std::vector<T>{value}, {}, options);
}
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(std::initializer_list<T> values,
                                               const TensorOptions& options = {}) {
  return detail::tensor_from_literals(std::vector<T>(values),
                                      {static_cast<std::int64_t>(values.size())}, options);
}
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(std::initializer_list<std::initializer_list<T>> rows,
                                               const TensorOptions& options = {}) {
  std::vector<T> values;
  const std::size_t width = rows.size() == 0 ? 0 : rows.begin()->size();
  for (const auto& row : rows) {
    check<ShapeError>(row.size() == width, "tensor", "rows must have one length; got {} and {}",
                      width, row.size());
    values.insert(values.end(), row.begin(), row.end());
  }
  return detail::tensor_from_literals(
      values, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(width)}, options);
}

}  // namespace norma
