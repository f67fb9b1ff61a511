#include "norma/cuda/kernels/rope.h"

#include "norma/cuda/kernels/element.cuh"
#include "norma/cuda/kernels/loop.cuh"

namespace norma::cuda_kernels {

namespace {

/// A thread for each pair that turns and for each element that does not.
template <class T, class C>
__global__ void rope_kernel(RopeShape s, std::int64_t rows, const T* x, const C* cos, const C* sin,
                            bool interleaved, C sign, T* out) {
  const std::int64_t per_row = s.width - s.half;
  for_each_index(rows * per_row, [&](std::int64_t work) {
    const std::int64_t row = work / per_row, k = work % per_row;
    const std::int64_t b = row / s.length / s.heads, h = row / s.length % s.heads,
                       i = row % s.length;
    const T* const from = x + b * s.x_strides[0] + h * s.x_strides[1] + i * s.x_strides[2];
    T* const to = out + b * s.out_strides[0] + h * s.out_strides[1] + i * s.out_strides[2];
    if (k >= s.half) {
      to[s.half + k] = from[s.half + k];
      return;
    }
    const std::int64_t first = interleaved ? 2 * k : k;
    const std::int64_t second = interleaved ? 2 * k + 1 : s.half + k;
    const C a = element<C>(from[first]), other = element<C>(from[second]);
    const C c = cos[i * s.half + k], turn = sign * sin[i * s.half + k];
    to[first] = element<T>(a * c - other * turn);
    to[second] = element<T>(other * c + a * turn);
  });
}

}  // namespace

template <class T, class C>
void rope(const RopeShape& shape, const T* x, const C* cos, const C* sin, bool interleaved,
          bool inverse, T* out, void* stream) {
  const std::int64_t count = shape.rows() * (shape.width - shape.half);
  if (count > 0)
    device::launch(loop_config("rope", count, stream), rope_kernel<T, C>, shape, shape.rows(), x,
                   cos, sin, interleaved, inverse ? C(-1) : C(1), out);
}

#define NORMA_ROPE(T)                                                                  \
  template void rope<T, compute_t<T>>(const RopeShape&, const T*, const compute_t<T>*, \
                                      const compute_t<T>*, bool, bool, T*, void*);
NORMA_FOR_FLOATING_TYPES(NORMA_ROPE)

}  // namespace norma::cuda_kernels
