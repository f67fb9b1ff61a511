#include "norma/cuda/kernels/memory.h"

#include "norma/cuda/kernels/element.cuh"
#include "norma/cuda/kernels/strided.cuh"

namespace norma::cuda_kernels {

namespace {

template <class T>
__global__ void fill_kernel(T* out, std::int64_t count, T value) {
  for_each_index(count, [=](std::int64_t i) { out[i] = value; });
}

template <class To, class From>
__global__ void copy_kernel(To* to, const From* from, StridedShape<2> shape) {
  for_each_offset(shape, [&](const auto& at) { to[at[0]] = element<To>(from[at[1]]); });
}

}  // namespace

template <class T>
void fill(T* out, std::int64_t count, T value, void* stream) {
  if (count == 0) return;
  device::launch(loop_config("fill", count, stream), fill_kernel<T>, out, count, value);
}

template <class To, class From>
void copy(To* to, const From* from, const StridedShape<2>& shape, void* stream) {
  if (shape.count == 0) return;
  device::launch(loop_config("copy", shape.count, stream), copy_kernel<To, From>, to, from, shape);
}

#define NORMA_COPY(To, From) \
  template void copy<To, From>(To*, const From*, const StridedShape<2>&, void*);
#define NORMA_MEMORY(T)                              \
  template void fill<T>(T*, std::int64_t, T, void*); \
  NORMA_COPY(T, bool)                                \
  NORMA_COPY(T, std::int32_t)                        \
  NORMA_COPY(T, std::int64_t)                        \
  NORMA_COPY(T, Half)                                \
  NORMA_COPY(T, BFloat16)                            \
  NORMA_COPY(T, float)                               \
  NORMA_COPY(T, double)
NORMA_FOR_ALL_TYPES(NORMA_MEMORY)

}  // namespace norma::cuda_kernels
