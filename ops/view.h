// Views: other shapes and strides on the same storage. They cost no copy; kernels that need
// row-major elements get them through contiguous(). Names, arguments and semantics as in PyTorch;
// every dimension may be negative (from the end). Any dtype; the gradient of each is its inverse.
//
// Errors: IndexError for a dimension or index out of range, ShapeError for sizes that do not fit.
#pragma once

#include "norma/core/tensor.h"

namespace norma {

/// The same data as another tensor object on the tape. As torch.Tensor.view_as(self).
Tensor alias(const Tensor& input);

/// The elements of `input` in row-major order under another shape, without a copy; one size may be
/// -1 (inferred). Throws ShapeError where the strides do not allow it: use reshape. As
/// torch.Tensor.view.
Tensor view(const Tensor& input, const Shape& shape);

/// view(), or a copy where the strides do not allow a view. As torch.reshape.
Tensor reshape(const Tensor& input, const Shape& shape);

/// Merges dimensions start_dim … end_dim into one; a scalar becomes a vector. As torch.flatten.
Tensor flatten(const Tensor& input, std::int64_t start_dim = 0, std::int64_t end_dim = -1);

/// Swaps two dimensions. As torch.transpose.
Tensor transpose(const Tensor& input, std::int64_t dim0, std::int64_t dim1);

/// The transpose of a matrix; a vector or scalar as it is. As torch.t.
Tensor t(const Tensor& input);

/// Dimension i of the result is dimension dims[i] of `input`. As torch.permute.
Tensor permute(const Tensor& input, const Shape& dims);

/// Repeats dimensions of size 1 (and new ones in front) without a copy; -1 keeps a size. The
/// gradient is summed over them. As torch.Tensor.expand.
Tensor expand(const Tensor& input, const Shape& shape);

/// Removes `dim` where it has size 1, otherwise nothing. As torch.squeeze.
Tensor squeeze(const Tensor& input, std::int64_t dim);
/// Removes all dimensions of size 1.
Tensor squeeze(const Tensor& input);

/// Inserts a dimension of size 1 at `dim` in [-rank - 1, rank]. As torch.unsqueeze.
Tensor unsqueeze(const Tensor& input, std::int64_t dim);

/// `length` slices of `dim` from `start` (negative: from the end). As torch.narrow.
Tensor narrow(const Tensor& input, std::int64_t dim, std::int64_t start, std::int64_t length);

/// Slice `index` of `dim`, which disappears. As torch.select.
Tensor select(const Tensor& input, std::int64_t dim, std::int64_t index);

/// Pieces of `split_size` along `dim`; the last may be smaller. As torch.split.
TensorList split(const Tensor& input, std::int64_t split_size, std::int64_t dim = 0);
/// Pieces of these sizes, which add up to the size of `dim`.
TensorList split(const Tensor& input, const Shape& split_sizes, std::int64_t dim = 0);

/// At most `chunks` pieces of equal size along `dim`; the last may be smaller. As torch.chunk.
TensorList chunk(const Tensor& input, std::int64_t chunks, std::int64_t dim = 0);

/// All slices of `dim`, without it. As torch.unbind.
TensorList unbind(const Tensor& input, std::int64_t dim = 0);

/// `input` itself where its elements lie in row-major order without gaps, else a copy of it that
/// does.
Tensor contiguous(const Tensor& input);

/// A contiguous copy. As torch.clone(memory_format=torch.contiguous_format).
Tensor clone(const Tensor& input);

/// Zeros of `size` slices along `dim` with `input` at `start`: the gradient of narrow.
Tensor zero_embed(const Tensor& input, std::int64_t dim, std::int64_t start, std::int64_t size);

}  // namespace norma
