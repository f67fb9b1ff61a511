// CPU random numbers: element i depends on (seed, offset, i) alone.
//
// uniform: element i is word i of the stream in float, words 2i and 2i + 1 in double. normal:
// Box-Muller on the uniforms 2k and 2k + 1 gives the elements 2k (cosine) and 2k + 1 (sine).
// randint: words 2i and 2i + 1.
#include <cmath>
#include <numbers>

#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"
#include "norma/ops/cpu/philox_simd.h"
#include "norma/ops/cpu/vec_math.h"

namespace norma::cpu_kernels {

namespace {

/// Calls `body(first, present, words)` for stretches of `per_chunk` elements: `present` of them
/// from `first` exist.
template <class Body>
void for_each_chunk(std::int64_t count, std::int64_t per_chunk, const PhiloxState& state,
                    const Body& body) {
  parallel_for((count + per_chunk - 1) / per_chunk, 4 * per_chunk,
               [&](std::int64_t begin, std::int64_t end) {
                 std::uint32_t words[philox_chunk];
                 for (std::int64_t chunk = begin; chunk < end; ++chunk) {
                   philox_words(state, static_cast<std::uint64_t>(chunk * philox_lanes), words);
                   const std::int64_t first = chunk * per_chunk;
                   body(first, std::min(per_chunk, count - first), words);
                 }
               });
}

/// Writes what `make(u, n)` turns the n uniforms of each chunk into.
template <class T, class Make>
void generate(const Tensor& out, const PhiloxState& state, const Make& make) {
  using A = accumulate_t<T>;
  constexpr std::int64_t per_chunk = std::is_same_v<A, double> ? philox_chunk / 2 : philox_chunk;
  T* const data = out.data<T>();
  for_each_chunk(out.numel(), per_chunk, state,
                 [&](std::int64_t first, std::int64_t present, const std::uint32_t* words) {
                   A values[per_chunk];
                   for (std::int64_t k = 0; k < per_chunk; ++k) {
                     if constexpr (std::is_same_v<A, double>)
                       values[k] = uniform_from_bits(words[2 * k], words[2 * k + 1]);
                     else
                       values[k] = uniform_from_bits(words[k]);
                   }
                   make(values, per_chunk);
                   for (std::int64_t k = 0; k < present; ++k)
                     data[first + k] = static_cast<T>(values[k]);
                 });
}

void uniform(const Tensor& out, PhiloxState state, double low, double high) {
  visit_floating(out.dtype(), "uniform", [&]<class T>(TypeTag<T>) {
    using A = accumulate_t<T>;
    const A start = static_cast<A>(low);
    const A range = static_cast<A>(high - low);
    const A bound = static_cast<A>(high);
    generate<T>(out, state, [&](A* values, std::int64_t count) {
      for (std::int64_t k = 0; k < count; ++k) {
        const A value = start + values[k] * range;
        // Rounding to T may reach the excluded bound.
        values[k] = static_cast<A>(static_cast<T>(value)) >= bound ? start : value;
      }
    });
  });
}

/// Cosine and sine of 2 pi u for u in [0, 1): branch-free, to about 1e-7.
inline void cos_sin_turn(float u, float* cosine, float* sine) {
  // A quarter of a turn, and the rest in [-pi/4, pi/4]; 4u and its rest are exact.
  const float quarters = 4.0F * u;
  const int quarter = static_cast<int>(quarters + 0.5F);
  const float x = (quarters - static_cast<float>(quarter)) * (std::numbers::pi_v<float> / 2.0F);
  const float x2 = x * x;
  // Taylor series; the first term left out is below 4e-9.
  const float s =
      x *
      (1.0F + x2 * (-1.0F / 6 + x2 * (1.0F / 120 + x2 * (-1.0F / 5040 + x2 * (1.0F / 362880)))));
  const float c = 1.0F + x2 * (-0.5F + x2 * (1.0F / 24 + x2 * (-1.0F / 720 + x2 * (1.0F / 40320))));
  const bool swapped = (quarter & 1) != 0;
  const float a = swapped ? s : c;
  const float b = swapped ? c : s;
  *cosine = ((quarter + 1) & 2) != 0 ? -a : a;
  *sine = (quarter & 2) != 0 ? -b : b;
}
inline void cos_sin_turn(double u, double* cosine, double* sine) {
  const double angle = 2.0 * std::numbers::pi * u;
  *cosine = std::cos(angle);
  *sine = std::sin(angle);
}

void normal(const Tensor& out, PhiloxState state, double mean, double std) {
  visit_floating(out.dtype(), "normal", [&]<class T>(TypeTag<T>) {
    using A = accumulate_t<T>;
    const A centre = static_cast<A>(mean);
    const A scale = static_cast<A>(std);
    generate<T>(out, state, [&](A* values, std::int64_t count) {
#pragma omp simd
      for (std::int64_t k = 0; k < count; k += 2) {
        A cosine;
        A sine;
        cos_sin_turn(values[k + 1], &cosine, &sine);
        const A radius =
            scale * std::sqrt(A{-2} * VecMath::log(A{1} - values[k]));  // 1 - u is never 0
        values[k] = centre + radius * cosine;
        values[k + 1] = centre + radius * sine;
      }
    });
  });
}

/// High 64 bits of the product: maps 64 random bits to [0, range) without a division.
std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64);
}

void randint(const Tensor& out, PhiloxState state, std::int64_t low, std::int64_t high) {
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  visit_all(out.dtype(), [&]<class T>(TypeTag<T>) {
    T* const data = out.data<T>();
    for_each_chunk(out.numel(), philox_chunk / 2, state,
                   [&](std::int64_t first, std::int64_t present, const std::uint32_t* words) {
                     for (std::int64_t k = 0; k < present; ++k) {
                       const std::uint64_t bits =
                           (std::uint64_t{words[2 * k]} << 32) | words[2 * k + 1];
                       const std::uint64_t value =
                           static_cast<std::uint64_t>(low) + multiply_high(bits, range);
                       data[first + k] = static_cast<T>(static_cast<std::int64_t>(value));
                     }
                   });
  });
}

}  // namespace

void add_random_kernels(Backend& table) {
  table.uniform = uniform;
  table.normal = normal;
  table.randint = randint;
}

}  // namespace norma::cpu_kernels
