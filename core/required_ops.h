// The few operations that core itself calls. Declared here and defined in ops/: the link closes the
// loop, so that no file of core includes one of ops. All but `add` and `sum_to_size` work without
// the tape.
#pragma once

#include "norma/core/random.h"
#include "norma/core/tensor.h"

namespace norma::detail {

/// out = value, any dtype; out contiguous.
void fill(const Tensor& out, double value);
/// out = source with conversion of dtype; equal shapes, any strides, any devices.
void copy(const Tensor& out, const Tensor& source);
/// out = out + alpha * other; equal shapes and dtypes, both contiguous.
void accumulate(const Tensor& out, const Tensor& other);
/// out ~ U[low, high) and out ~ N(mean, std^2).
void fill_uniform(const Tensor& out, double low, double high);
void fill_normal(const Tensor& out, double mean, double std);
void fill_randint(const Tensor& out, std::int64_t low, std::int64_t high);
/// Whether every element is finite.
bool all_finite(const Tensor& tensor);
/// Whether an element is NaN.
bool any_nan(const Tensor& tensor);
/// Differentiable sum of two tensors of one shape.
Tensor add(const Tensor& a, const Tensor& b);
/// Differentiable sum over the dimensions in which `shape` was broadcast to tensor.shape().
Tensor sum_to_size(const Tensor& tensor, const Shape& shape);
/// Differentiable conversion.
Tensor cast(const Tensor& tensor, DType dtype);
/// A differentiable copy of the handle: another tensor object on the same data.
Tensor alias(const Tensor& tensor);

}  // namespace norma::detail
