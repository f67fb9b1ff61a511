// Loops over operands of one shape with any strides.
#pragma once

#include "norma/cuda/kernels/loop.cuh"
#include "norma/cuda/kernels/strided.h"

namespace norma::cuda_kernels {

/// Calls use(offsets) for this thread's share of the elements of `shape`: an offset for each
/// operand.
template <std::size_t operands, class Use>
__device__ __forceinline__ void for_each_offset(const StridedShape<operands>& shape,
                                                const Use& use) {
  for_each_index(shape.count, [&](std::int64_t i) {
    std::int64_t offsets[operands] = {};
    // The outermost dimension takes what the others leave: contiguous operands divide nothing.
    for (int d = shape.rank - 1; d >= 0; --d) {
      const auto dim = static_cast<std::size_t>(d);
      const std::int64_t rest = d > 0 ? i / shape.sizes[dim] : 0;
      const std::int64_t index = i - rest * shape.sizes[dim];
      i = rest;
      NORMA_UNROLL
      for (std::size_t k = 0; k < operands; ++k) offsets[k] += index * shape.strides[k][dim];
    }
    use(offsets);
  });
}

}  // namespace norma::cuda_kernels
