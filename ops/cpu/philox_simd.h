// Philox in vector registers: the same words as core/random.h, several blocks at a time.
#pragma once

#include "norma/core/random.h"

namespace norma::cpu_kernels {

/// Blocks that philox_words makes at a time, and the words in them.
inline constexpr std::int64_t philox_lanes = 16;
inline constexpr std::int64_t philox_chunk = 4 * philox_lanes;

/// words[0 … philox_chunk) = words [4 * block, 4 * block + philox_chunk) of the stream that starts
/// at `state`.
inline void philox_words(const PhiloxState& state, std::uint64_t block,
                         std::uint32_t* __restrict__ words) {
  const std::uint64_t first = state.offset + block;
  const auto key0 = static_cast<std::uint32_t>(state.seed);
  const auto key1 = static_cast<std::uint32_t>(state.seed >> 32);
  // One loop over lanes a round: each vectorises, and the arrays live in registers or the first
  // cache line.
  std::uint32_t c0[philox_lanes], c1[philox_lanes], c2[philox_lanes], c3[philox_lanes];
  for (std::int64_t lane = 0; lane < philox_lanes; ++lane) {
    const std::uint64_t counter = first + static_cast<std::uint64_t>(lane);
    c0[lane] = static_cast<std::uint32_t>(counter);
    c1[lane] = static_cast<std::uint32_t>(counter >> 32);
    c2[lane] = 0;
    c3[lane] = 0;
  }
  std::uint32_t k0 = key0;
  std::uint32_t k1 = key1;
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < philox_lanes; ++lane) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * c0[lane];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * c2[lane];
      c0[lane] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[lane] ^ k0;
      c1[lane] = static_cast<std::uint32_t>(p1);
      c2[lane] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[lane] ^ k1;
      c3[lane] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  for (std::int64_t lane = 0; lane < philox_lanes; ++lane) {
    words[4 * lane] = c0[lane];
    words[4 * lane + 1] = c1[lane];
    words[4 * lane + 2] = c2[lane];
    words[4 * lane + 3] = c3[lane];
  }
}

}  // namespace norma::cpu_kernels
