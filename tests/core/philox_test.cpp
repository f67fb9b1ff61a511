#include "norma/core/philox.h"

#include "support/catch.h"
#include "support/philox_vectors.h"

namespace norma::test {

TEST_CASE("Philox 4x32-10 gives Random123's words", "[philox]") {
  for (const PhiloxVector& vector : philox_vectors)
    CHECK(philox4x32(vector.counter, vector.key) == vector.words);
}

TEST_CASE("a stream of random numbers is Philox of its seed and a 64-bit counter", "[philox]") {
  CHECK(philox(0, 0) == philox_vectors[0].words);
  const std::uint64_t seed = 0x0123456789abcdef, counter = 0xfedcba9876543210;
  CHECK(philox(seed, counter) == philox4x32({0x76543210, 0xfedcba98, 0, 0}, seed));
  for (std::uint64_t i = 0; i < 8; ++i)
    CHECK(philox_word({seed, counter}, i) == philox(seed, counter + i / 4)[i % 4]);
}

}  // namespace norma::test
