// Loops over independent elements.
#pragma once

#include "norma/cuda/device.cuh"

#include <algorithm>

namespace norma::cuda_kernels {

inline constexpr unsigned loop_threads = 256;

/// A launch for a loop over `count` elements, at least one.
inline device::LaunchConfig loop_config(const char* name, std::int64_t count, void* stream) {
  const std::int64_t blocks = (count + loop_threads - 1) / loop_threads;
  return {.name = name,
          .grid = {static_cast<unsigned>(std::min<std::int64_t>(blocks, 1 << 16))},
          .block = {loop_threads},
          .stream = stream};
}

/// Calls use(i) for this thread's share of 0 … count - 1, in steps of all threads of the grid.
template <class Use>
__device__ __forceinline__ void for_each_index(std::int64_t count, const Use& use) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    use(i);
}

}  // namespace norma::cuda_kernels
