// The random words of core/philox.h, for kernels: nvcc takes only functions that say they run on
// the device. Tests compare the two.
#pragma once

#include "norma/core/philox.h"
#include "norma/cuda/device.cuh"

namespace norma::device {

/// Four random words, by number.
struct RandomBlock {
  std::uint32_t w0, w1, w2, w3;
  /// Without an array: an index that is not known at compile time would put it into memory.
  __device__ __forceinline__ std::uint32_t word(std::uint64_t i) const {
    return (i & 2) == 0 ? ((i & 1) == 0 ? w0 : w1) : ((i & 1) == 0 ? w2 : w3);
  }
};

/// As norma::philox4x32.
__device__ inline RandomBlock philox4x32(RandomBlock c, std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < Philox::rounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{Philox::m0} * c.w0;
    const std::uint64_t p1 = std::uint64_t{Philox::m1} * c.w2;
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c.w1 ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c.w3 ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += Philox::w0;
    k1 += Philox::w1;
  }
  return c;
}

/// Block `block` of the stream that starts at `state`: words 4 block … 4 block + 3.
__device__ inline RandomBlock random_block(const PhiloxState& state, std::uint64_t block) {
  const std::uint64_t counter = state.offset + block;
  return philox4x32(
      {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0},
      state.seed);
}

/// Dropout keeps element i where word i of the stream says so, as on the CPU.
class DropoutMask {
 public:
  __device__ DropoutMask(const PhiloxState& state, double p)
      : state_(state), threshold_(static_cast<std::uint32_t>(ceil(p * 16777216.0))) {}
  /// Neighbouring i one after the other share the work of a block.
  __device__ __forceinline__ bool keeps(std::int64_t i) {
    const std::uint64_t block = static_cast<std::uint64_t>(i) / 4;
    if (block != block_) {
      words_ = random_block(state_, block);
      block_ = block;
    }
    return (words_.word(static_cast<std::uint64_t>(i)) >> 8) >= threshold_;
  }

 private:
  PhiloxState state_;
  std::uint32_t threshold_;
  std::uint64_t block_ = ~std::uint64_t{0};
  RandomBlock words_{};
};

/// What dropout multiplies kept elements with.
template <class C>
__device__ __forceinline__ C dropout_scale(double p) {
  return p < 1.0 ? static_cast<C>(1.0 / (1.0 - p)) : C(0);
}

}  // namespace norma::device
