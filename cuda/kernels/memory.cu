#include "norma/cuda/kernels/memory.h"

#include "norma/cuda/kernels/loop.cuh"

#include <type_traits>

namespace norma::cuda_kernels {

namespace {

using device::convert;

template <class T>
constexpr bool is_16_bit = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// Any dtype to any other, as the CPU converts: 16-bit floats by way of float.
template <class To, class From>
__device__ __forceinline__ To element(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (is_16_bit<From>)
    return element<To>(convert<float>(value));
  else if constexpr (is_16_bit<To>)
    return convert<To>(static_cast<float>(value));
  else
    return static_cast<To>(value);
}

template <class T>
__global__ void fill_kernel(T* out, std::int64_t count, T value) {
  for_each_index(count, [=](std::int64_t i) { out[i] = value; });
}

template <class To, class From>
__global__ void copy_kernel(To* to, const From* from, CopyShape shape) {
  for_each_index(shape.count, [&](std::int64_t i) {
    std::int64_t to_offset = 0, from_offset = 0;
    for (int d = shape.rank - 1; d >= 0; --d) {
      const auto dim = static_cast<std::size_t>(d);
      const std::int64_t index = i % shape.sizes[dim];
      i /= shape.sizes[dim];
      to_offset += index * shape.to[dim];
      from_offset += index * shape.from[dim];
    }
    to[to_offset] = element<To>(from[from_offset]);
  });
}

}  // namespace

template <class T>
void fill(T* out, std::int64_t count, T value, void* stream) {
  if (count == 0) return;
  device::launch(loop_config("fill", count, stream), fill_kernel<T>, out, count, value);
}

template <class To, class From>
void copy(To* to, const From* from, const CopyShape& shape, void* stream) {
  if (shape.count == 0) return;
  device::launch(loop_config("copy", shape.count, stream), copy_kernel<To, From>, to, from, shape);
}

#define NORMA_COPY(To, From) \
  template void copy<To, From>(To*, const From*, const CopyShape&, void*);
#define NORMA_MEMORY(T)                              \
  template void fill<T>(T*, std::int64_t, T, void*); \
  NORMA_COPY(T, bool)                                \
  NORMA_COPY(T, std::int32_t)                        \
  NORMA_COPY(T, std::int64_t)                        \
  NORMA_COPY(T, Half)                                \
  NORMA_COPY(T, BFloat16)                            \
  NORMA_COPY(T, float)                               \
  NORMA_COPY(T, double)
NORMA_MEMORY(bool)
NORMA_MEMORY(std::int32_t)
NORMA_MEMORY(std::int64_t)
NORMA_MEMORY(Half)
NORMA_MEMORY(BFloat16)
NORMA_MEMORY(float)
NORMA_MEMORY(double)

}  // namespace norma::cuda_kernels
