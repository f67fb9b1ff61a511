// Reductions: over all elements, or over a list of dimensions. Names, arguments and semantics as in
// PyTorch.
//
// `dims` may be negative (from the end); an empty list means all dimensions. With `keepdim` a
// reduced dimension stays with size 1. float16 and bfloat16 are accumulated in float32. Sums run in
// a fixed order: results repeat bit for bit, whatever the number of threads. Errors: IndexError for
// a dimension out of range, ValueError for one named twice.
#pragma once

#include "norma/core/tensor.h"

namespace norma {

/// Sum; of bool or integers in int64. Gradient: expanded. As torch.sum.
Tensor sum(const Tensor& input, const Shape& dims = {}, bool keepdim = false);

/// Mean of a floating-point tensor; NaN over no elements. As torch.mean.
Tensor mean(const Tensor& input, const Shape& dims = {}, bool keepdim = false);

/// Variance: sum of (x - mean)^2 / max(0, n - correction), two passes. As torch.var.
Tensor var(const Tensor& input, const Shape& dims = {}, std::int64_t correction = 1,
           bool keepdim = false);

/// Square root of var(); its gradient is 0 where all elements are equal. As torch.std.
Tensor std(const Tensor& input, const Shape& dims = {}, std::int64_t correction = 1,
           bool keepdim = false);

/// Product; of bool or integers in int64. Zeros get their right gradient. As torch.prod.
Tensor prod(const Tensor& input, const Shape& dims = {}, bool keepdim = false);

/// Largest and smallest element; NaN wins. Elements that tie share the gradient evenly. Throws
/// ShapeError over no elements. As torch.amax and torch.amin.
Tensor amax(const Tensor& input, const Shape& dims = {}, bool keepdim = false);
Tensor amin(const Tensor& input, const Shape& dims = {}, bool keepdim = false);

/// Result of max and min over one dimension.
struct ValuesAndIndices {
  Tensor values;
  Tensor indices;  ///< int64, no gradient
};

/// Largest or smallest element of all: amax or amin. As torch.max(input).
Tensor max(const Tensor& input);
Tensor min(const Tensor& input);
/// Largest or smallest element of each slice and its first index, which gets the whole gradient. As
/// torch.max(input, dim).
ValuesAndIndices max(const Tensor& input, std::int64_t dim, bool keepdim = false);
ValuesAndIndices min(const Tensor& input, std::int64_t dim, bool keepdim = false);

/// First index of the largest or smallest element, int64, in the flattened tensor or along `dim`.
/// As torch.argmax.
Tensor argmax(const Tensor& input);
Tensor argmax(const Tensor& input, std::int64_t dim, bool keepdim = false);
Tensor argmin(const Tensor& input);
Tensor argmin(const Tensor& input, std::int64_t dim, bool keepdim = false);

/// Whether any, or every, element is not 0; bool. As torch.any and torch.all.
Tensor any(const Tensor& input, const Shape& dims = {}, bool keepdim = false);
Tensor all(const Tensor& input, const Shape& dims = {}, bool keepdim = false);

/// out[i] = x[0] + … + x[i] along `dim`; of bool or integers in int64. As torch.cumsum.
Tensor cumsum(const Tensor& input, std::int64_t dim);

/// log(sum(exp(x))) without overflow. Gradient: softmax. As torch.logsumexp.
Tensor logsumexp(const Tensor& input, const Shape& dims, bool keepdim = false);

/// Euclidean length sqrt(sum(x^2)). Gradient: x / norm, 0 where the norm is 0. As
/// torch.linalg.vector_norm(ord=2).
Tensor vector_norm(const Tensor& input, const Shape& dims = {}, bool keepdim = false);

/// Sum over the dimensions in which a tensor of `shape` was broadcast to `input`. Throws ShapeError
/// where it cannot have been. As torch.Tensor.sum_to_size.
Tensor sum_to_size(const Tensor& input, const Shape& shape);

namespace composite {
/// The same by pairwise products of elements.
Tensor prod(const Tensor& input, const Shape& dims = {}, bool keepdim = false);
/// The same by exp, sum and log.
Tensor logsumexp(const Tensor& input, const Shape& dims, bool keepdim = false);
}  // namespace composite

}  // namespace norma
