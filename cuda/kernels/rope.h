// Rotary positions on the device.
#pragma once

#include <cstdint>

namespace norma::cuda_kernels {

/// x and out [batch, heads, length, width] with strides of the first three dimensions; the first
/// 2 * half of the width turn.
struct RopeShape {
  std::int64_t batch, heads, length, width, half;
  std::int64_t x_strides[3], out_strides[3];
  std::int64_t rows() const { return batch * heads * length; }
};

/// cos, sin [length, half] in C: double for double, else float.
template <class T, class C>
void rope(const RopeShape& shape, const T* x, const C* cos, const C* sin, bool interleaved,
          bool inverse, T* out, void* stream);

}  // namespace norma::cuda_kernels
