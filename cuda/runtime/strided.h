// Strides of tensors for kernels that take any.
#pragma once

#include "norma/core/shape.h"
#include "norma/cuda/kernels/strided.h"

#include <algorithm>

namespace norma::cuda_kernels {

/// Dimensions from the outermost to the innermost of the first operand, merged where every operand
/// runs on without a gap: operands of one contiguous shape give one dimension.
template <std::size_t operands>
StridedShape<operands> strided_shape(const Shape& shape,
                                     const std::array<Shape, operands>& strides) {
  static_assert(StridedShape<operands>::max_rank == Shape::max_rank);
  std::array<std::int64_t, Shape::max_rank> dims{};
  std::size_t rank = 0;
  for (std::int64_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1) dims[rank++] = d;
  std::stable_sort(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(rank),
                   [&](std::int64_t a, std::int64_t b) { return strides[0][a] > strides[0][b]; });
  StridedShape<operands> result;
  result.count = shape.numel();
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t d = dims[i];
    const auto last = static_cast<std::size_t>(result.rank) - 1;
    bool merges = result.rank > 0;
    for (std::size_t k = 0; merges && k < operands; ++k)
      merges = result.strides[k][last] == strides[k][d] * shape[d];
    const std::size_t at = merges ? last : last + 1;
    if (!merges) ++result.rank;
    result.sizes[at] = shape[d] * (merges ? result.sizes[at] : 1);
    for (std::size_t k = 0; k < operands; ++k) result.strides[k][at] = strides[k][d];
  }
  return result;
}

}  // namespace norma::cuda_kernels
