// Counter-based random numbers (Philox 4x32-10).
//
// Element i of a random operation depends on (seed, offset, i) alone: not on threads, vector width
// or device. An operation reserves its range of the counter and keeps only (seed, offset) for
// backward; nothing stores masks. Source: Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As
// Easy as 1, 2, 3 (SC 2011).
//
// Without the rest of core, for kernels: nvcc cannot compile fmt.
#pragma once

#include <array>
#include <cstdint>

namespace norma {

/// A reserved range of one generator's stream: all a kernel needs.
struct PhiloxState {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;  ///< first 128-bit block
};

/// What Philox 4x32 is made of: the factors of a round, what it adds to the key, and their number.
/// Each of its three implementations (here, ops/cpu/philox_simd.h, cuda/philox.cuh) reads it here.
struct Philox {
  static constexpr std::uint32_t m0 = 0xD2511F53, m1 = 0xCD9E8D57;
  static constexpr std::uint32_t w0 = 0x9E3779B9, w1 = 0xBB67AE85;
  static constexpr int rounds = 10;
};

/// Philox 4x32-10 of the 128-bit counter `c` and the key `key`, as Random123's philox4x32.
inline std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < Philox::rounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{Philox::m0} * c[0];
    const std::uint64_t p1 = std::uint64_t{Philox::m1} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += Philox::w0;
    k1 += Philox::w1;
  }
  return c;
}

/// Block `counter` of the stream of `seed`: four uniform 32-bit words.
inline std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t counter) {
  return philox4x32(
      {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0}, seed);
}

/// Word `index` of the stream that starts at `state`: four words a block.
inline std::uint32_t philox_word(const PhiloxState& state, std::uint64_t index) {
  return philox(state.seed, state.offset + index / 4)[index % 4];
}

/// Uniform in [0, 1) with 24 bits.
inline float uniform_from_bits(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * (1.0F / 16777216.0F);
}
/// Uniform in [0, 1) with 53 bits.
inline double uniform_from_bits(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32) | low;
  return static_cast<double>(bits >> 11) * (1.0 / 9007199254740992.0);
}

}  // namespace norma
