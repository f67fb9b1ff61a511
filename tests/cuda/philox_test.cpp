// The random words of CUDA kernels against the published ones and the CPU's.
#include "norma/cuda/philox.cuh"

#include "support/catch.h"
#include "support/philox_vectors.h"

namespace norma::test {
namespace {

std::array<std::uint32_t, 4> words(const device::RandomBlock& block) {
  return {block.word(0), block.word(1), block.word(2), block.word(3)};
}

}  // namespace

TEST_CASE("CUDA: Philox 4x32-10 gives Random123's words") {
  for (const PhiloxVector& vector : philox_vectors) {
    const auto& c = vector.counter;
    CHECK(words(device::philox4x32({c[0], c[1], c[2], c[3]}, vector.key)) == vector.words);
  }
}

TEST_CASE("CUDA: a block of a stream is the CPU's") {
  const PhiloxState state{0x0123456789abcdef, 0xfffffffe};  // the counter grows over 32 bits
  for (std::uint64_t block = 0; block < 4; ++block)
    CHECK(words(device::random_block(state, block)) == philox(state.seed, state.offset + block));
}

}  // namespace norma::test
