// The kernels of unit_rows: rows of length 1. One block takes one row.
#pragma once

#include <norma/cuda/device.cuh>

namespace custom_op {

inline constexpr int threads = 128;

/// The sum of `value` over the block, in every thread.
__device__ inline float block_sum(float value, float* scratch) {
  for (int step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync(norma::device::all_lanes, value, step);
  __syncthreads();  // the last call's readers are done
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.0F;
  for (int warp = 0; warp < threads / 32; ++warp) value += scratch[warp];
  return value;
}

/// y = x / sqrt(sum of x^2 + eps); length [rows] keeps the root for the backward.
__global__ void unit_rows_forward(const float* x, std::int64_t width, float eps, float* y,
                                  float* length) {
  NORMA_SHARED(float, scratch, threads / 32);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * width;
  float squares = 0.0F;
  for (std::int64_t i = threadIdx.x; i < width; i += threads)
    squares += x[first + i] * x[first + i];
  const float root = sqrtf(block_sum(squares, scratch) + eps);
  for (std::int64_t i = threadIdx.x; i < width; i += threads) y[first + i] = x[first + i] / root;
  if (threadIdx.x == 0) length[blockIdx.x] = root;
}

/// dx = (dy - y * sum of dy y) / length.
__global__ void unit_rows_backward(const float* y, const float* length, const float* dy,
                                   std::int64_t width, float* dx) {
  NORMA_SHARED(float, scratch, threads / 32);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * width;
  float products = 0.0F;
  for (std::int64_t i = threadIdx.x; i < width; i += threads)
    products += dy[first + i] * y[first + i];
  const float share = block_sum(products, scratch);
  for (std::int64_t i = threadIdx.x; i < width; i += threads)
    dx[first + i] = (dy[first + i] - y[first + i] * share) / length[blockIdx.x];
}

}  // namespace custom_op
