// Counter-based random numbers for data order: a value is a pure function of its key, the same on
// every platform and in every order of evaluation (std::shuffle and std:: distributions are not).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace imdb {

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection that mixes all 64 bits.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// A key from several numbers; the order of the numbers matters.
template <class... Rest>
constexpr std::uint64_t mix(std::uint64_t first, Rest... rest) {
  std::uint64_t key = mix(first);
  ((key = mix(key ^ static_cast<std::uint64_t>(rest))), ...);
  return key;
}

/// A uniform number in [0, 1) from 53 of the 64 bits.
constexpr double uniform(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/// A uniform number in [0, bound); the bias of the multiplication is below 2^-32 for bounds below
/// 2^32.
constexpr std::uint64_t bounded(std::uint64_t bits, std::uint64_t bound) {
  return ((bits >> 32) * bound) >> 32;
}

/// Fisher-Yates, driven by `key`.
template <class T>
void shuffle(std::vector<T>& values, std::uint64_t key) {
  for (std::size_t i = values.size(); i > 1; --i)
    std::swap(values[i - 1], values[bounded(mix(key, i), i)]);
}

}  // namespace imdb
