// Philox in vector registers: the same words as core/philox.h, several blocks at a time.
#pragma once

#include "norma/core/philox.h"

#include <algorithm>
#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace norma::cpu_kernels {

/// Blocks that philox_words makes at a time, and the words in them.
inline constexpr std::int64_t philox_lanes = 16;
inline constexpr std::int64_t philox_chunk = 4 * philox_lanes;

#ifdef __AVX2__
/// Four blocks, each word in the lower half of a 64-bit lane: that is where the widening
/// multiplication reads it, and what stands in the upper half does not matter.
struct PhiloxVector {
  __m256i c0, c1, c2, c3;

  explicit PhiloxVector(std::uint64_t counter)
      : c0(_mm256_add_epi64(_mm256_set1_epi64x(static_cast<long long>(counter)),
                            _mm256_set_epi64x(3, 2, 1, 0))),
        c1(_mm256_srli_epi64(c0, 32)),
        c2(_mm256_setzero_si256()),
        c3(_mm256_setzero_si256()) {}

  void round(__m256i k0, __m256i k1) {
    const __m256i p0 = _mm256_mul_epu32(c0, _mm256_set1_epi64x(Philox::m0));
    const __m256i p1 = _mm256_mul_epu32(c2, _mm256_set1_epi64x(Philox::m1));
    c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1), k0);
    c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3), k1);
    c1 = p1;
    c3 = p0;
  }

  /// Sixteen words in the order of the blocks.
  void store(std::uint32_t* words) const {
    const __m256i c01 = _mm256_blend_epi32(c0, _mm256_slli_epi64(c1, 32), 0xAA);
    const __m256i c23 = _mm256_blend_epi32(c2, _mm256_slli_epi64(c3, 32), 0xAA);
    const __m256i even = _mm256_unpacklo_epi64(c01, c23);  // blocks 0 and 2
    const __m256i odd = _mm256_unpackhi_epi64(c01, c23);   // blocks 1 and 3
    auto* const out = reinterpret_cast<__m256i*>(words);
    _mm256_storeu_si256(out, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(even, odd, 0x31));
  }
};

#endif

/// words[0 … philox_chunk) = words [4 * block, 4 * block + philox_chunk) of the stream that starts
/// at `state`.
inline void philox_words(const PhiloxState& state, std::uint64_t block, std::uint32_t* words) {
  const std::uint64_t first = state.offset + block;
#ifdef __AVX2__
  // Two vectors at a time hide the latency of the multiplications; more would not fit the
  // registers.
  for (std::uint64_t lane = 0; lane < philox_lanes; lane += 8) {
    PhiloxVector a(first + lane);
    PhiloxVector b(first + lane + 4);
    auto k0 = static_cast<std::uint32_t>(state.seed);
    auto k1 = static_cast<std::uint32_t>(state.seed >> 32);
    for (int round = 0; round < Philox::rounds; ++round) {
      const __m256i keys0 = _mm256_set1_epi64x(k0);
      const __m256i keys1 = _mm256_set1_epi64x(k1);
      a.round(keys0, keys1);
      b.round(keys0, keys1);
      k0 += Philox::w0;
      k1 += Philox::w1;
    }
    a.store(words + 4 * lane);
    b.store(words + 4 * lane + 16);
  }
#else
  for (std::uint64_t lane = 0; lane < philox_lanes; ++lane) {
    const std::array<std::uint32_t, 4> made = philox(state.seed, first + lane);
    std::copy(made.begin(), made.end(), words + 4 * lane);
  }
#endif
}

}  // namespace norma::cpu_kernels
