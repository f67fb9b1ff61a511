// uniform: element i is word i of the stream in float, words 2i and 2i + 1 in double. normal:
// Box-Muller on the uniforms 2k and 2k + 1 gives the elements 2k (cosine) and 2k + 1 (sine).
// randint: words 2i and 2i + 1. A thread makes what four words give.
#include "norma/cuda/kernels/random.h"

#include "norma/cuda/kernels/element.cuh"
#include "norma/cuda/kernels/loop.cuh"
#include "norma/cuda/kernels/math.cuh"
#include "norma/cuda/philox.cuh"

#include <numbers>

namespace norma::cuda_kernels {

namespace {

using device::RandomBlock;

__device__ __forceinline__ std::uint64_t join(std::uint32_t high, std::uint32_t low) {
  return (std::uint64_t{high} << 32) | low;
}

/// Uniforms in [0, 1) from four words: 4 of 24 bits or 2 of 53, as core/philox.h makes them.
template <class C>
inline constexpr int uniforms = std::is_same_v<C, double> ? 2 : 4;
__device__ __forceinline__ void make_uniforms(const RandomBlock& words, float (&u)[4]) {
  const std::uint32_t all[] = {words.w0, words.w1, words.w2, words.w3};
  NORMA_UNROLL
  for (int k = 0; k < 4; ++k) u[k] = static_cast<float>(all[k] >> 8) * (1.0F / 16777216.0F);
}
__device__ __forceinline__ void make_uniforms(const RandomBlock& words, double (&u)[2]) {
  constexpr double unit = 1.0 / 9007199254740992.0;
  u[0] = static_cast<double>(join(words.w0, words.w1) >> 11) * unit;
  u[1] = static_cast<double>(join(words.w2, words.w3) >> 11) * unit;
}

/// out = what `change` makes of the uniforms of each block of words.
template <class T, class Change>
__device__ __forceinline__ void generate(const PhiloxState& state, std::int64_t count, T* out,
                                         const Change& change) {
  using C = compute_t<T>;
  constexpr int per_block = uniforms<C>;
  for_each_index((count + per_block - 1) / per_block, [&](std::int64_t block) {
    C values[per_block];
    make_uniforms(device::random_block(state, static_cast<std::uint64_t>(block)), values);
    change(values);
    NORMA_UNROLL
    for (int k = 0; k < per_block; ++k)
      if (block * per_block + k < count) out[block * per_block + k] = element<T>(values[k]);
  });
}

template <class T>
__global__ void uniform_kernel(PhiloxState state, compute_t<T> low, compute_t<T> range,
                               compute_t<T> high, std::int64_t count, T* out) {
  using C = compute_t<T>;
  generate(state, count, out, [=](auto& values) {
    for (C& value : values) {
      value = low + value * range;
      // Rounding to T may reach the excluded bound.
      if (element<C>(element<T>(value)) >= high) value = low;
    }
  });
}

template <class T>
__global__ void normal_kernel(PhiloxState state, compute_t<T> mean, compute_t<T> std,
                              std::int64_t count, T* out) {
  using C = compute_t<T>;
  generate(state, count, out, [=](auto& values) {
    NORMA_UNROLL
    for (int k = 0; k < uniforms<C>; k += 2) {
      const C angle = C(2) * std::numbers::pi_v<C> * values[k + 1];
      const C radius =
          std * DeviceMath::sqrt(C(-2) * DeviceMath::log(C(1) - values[k]));  // 1 - u is never 0
      values[k] = mean + radius * DeviceMath::cos(angle);
      values[k + 1] = mean + radius * DeviceMath::sin(angle);
    }
  });
}

/// High 64 bits of the product: maps 64 random bits to [0, range) without a division.
__device__ __forceinline__ std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64);
}

template <class T>
__global__ void randint_kernel(PhiloxState state, std::uint64_t low, std::uint64_t range,
                               std::int64_t count, T* out) {
  for_each_index((count + 1) / 2, [=](std::int64_t block) {
    const RandomBlock words = device::random_block(state, static_cast<std::uint64_t>(block));
    const auto value = [=](std::uint64_t bits) {
      return element<T>(static_cast<std::int64_t>(low + multiply_high(bits, range)));
    };
    out[2 * block] = value(join(words.w0, words.w1));
    if (2 * block + 1 < count) out[2 * block + 1] = value(join(words.w2, words.w3));
  });
}

}  // namespace

template <class T>
void uniform(const PhiloxState& state, double low, double high, std::int64_t count, T* out,
             void* stream) {
  using C = compute_t<T>;
  if (count > 0)
    device::launch(loop_config("uniform", (count + 1) / 2, stream), uniform_kernel<T>, state,
                   static_cast<C>(low), static_cast<C>(high - low), static_cast<C>(high), count,
                   out);
}
template <class T>
void normal(const PhiloxState& state, double mean, double std, std::int64_t count, T* out,
            void* stream) {
  using C = compute_t<T>;
  if (count > 0)
    device::launch(loop_config("normal", (count + 1) / 2, stream), normal_kernel<T>, state,
                   static_cast<C>(mean), static_cast<C>(std), count, out);
}
template <class T>
void randint(const PhiloxState& state, std::int64_t low, std::int64_t high, std::int64_t count,
             T* out, void* stream) {
  const auto start = static_cast<std::uint64_t>(low);
  if (count > 0)
    device::launch(loop_config("randint", (count + 1) / 2, stream), randint_kernel<T>, state, start,
                   static_cast<std::uint64_t>(high) - start, count, out);
}

#define NORMA_RANDOM(T)                                                                  \
  template void uniform<T>(const PhiloxState&, double, double, std::int64_t, T*, void*); \
  template void normal<T>(const PhiloxState&, double, double, std::int64_t, T*, void*);
#define NORMA_RANDINT(T) \
  template void randint<T>(const PhiloxState&, std::int64_t, std::int64_t, std::int64_t, T*, void*);
NORMA_FOR_FLOATING_TYPES(NORMA_RANDOM)
NORMA_FOR_ALL_TYPES(NORMA_RANDINT)

}  // namespace norma::cuda_kernels
