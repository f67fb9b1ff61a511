// The known answers of Philox 4x32-10 in Random123's kat_vectors (Salmon et al., SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace norma::test {

struct PhiloxVector {
  std::array<std::uint32_t, 4> counter;
  std::uint64_t key;  ///< the second word of Random123's in the upper half
  std::array<std::uint32_t, 4> words;
};

inline constexpr PhiloxVector philox_vectors[] = {
    {{0, 0, 0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     0xffffffffffffffff,
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     0x299f31d0a4093822,
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};

}  // namespace norma::test
