// Picking and placing elements by index, and joining tensors. Names, arguments and semantics as in
// PyTorch.
//
// Indices are int64 (or int32, which is converted). Errors: IndexError for an index out of range,
// with the bad value and its position, and for a `dim` out of range; DTypeError for indices that
// are no integers; ShapeError for shapes that do not fit; DeviceError for operands on several
// devices; ValueError for nothing to join. Backward is deterministic: sums run in a fixed order,
// whatever the number of threads.
#pragma once

#include <optional>

#include "norma/core/tensor.h"

namespace norma {

/// out[i][j] = input[index[i][j]][j] for dim 0, and so on: `index` has the rank of `input` and is
/// no larger than it outside of `dim`. Gradient: scatter_add of grad into zeros. As torch.gather.
Tensor gather(const Tensor& input, std::int64_t dim, const Tensor& index);

/// A copy of `input` with out[index[i][j]][j] = src[i][j] for dim 0, and so on. Where an index
/// repeats, the last one (in the order of `dim`) wins; the gradient of `src` is only right where
/// none does, as in PyTorch. As torch.scatter.
Tensor scatter(const Tensor& input, std::int64_t dim, const Tensor& index, const Tensor& src);

/// A copy of `input` with out[index[i][j]][j] += src[i][j] for dim 0, and so on. As
/// torch.scatter_add.
Tensor scatter_add(const Tensor& input, std::int64_t dim, const Tensor& index, const Tensor& src);

/// The slices of `dim` that the vector (or scalar) `index` names, in its order. As
/// torch.index_select.
Tensor index_select(const Tensor& input, std::int64_t dim, const Tensor& index);

/// Joins tensors along `dim`; all other sizes must agree, dtypes are promoted. As torch.cat.
Tensor cat(const TensorList& tensors, std::int64_t dim = 0);

/// Joins tensors of one shape along a new dimension. As torch.stack.
Tensor stack(const TensorList& tensors, std::int64_t dim = 0);

/// int64 [..., num_classes] with a 1 at each index; num_classes -1 takes the largest index + 1. Not
/// differentiable. As torch.nn.functional.one_hot.
Tensor one_hot(const Tensor& index, std::int64_t num_classes = -1);

/// Row input[...] of `weight` [num_embeddings, embedding_dim] for every index: [...,
/// embedding_dim]. Rows that equal `padding_idx` (negative: from the end) are read, but get no
/// gradient. Throws IndexError with the bad index and its position. As
/// torch.nn.functional.embedding.
Tensor embedding(const Tensor& input, const Tensor& weight,
                 std::optional<std::int64_t> padding_idx = std::nullopt);

}  // namespace norma
