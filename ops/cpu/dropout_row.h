// The mask of dropout for a part of a tensor, as the kernels of fused operations need it.
#pragma once

#include "norma/ops/cpu/philox_simd.h"

#include <cmath>

namespace norma::cpu_kernels {

/// Calls use(i, kept) for the elements first … first + count - 1 of a tensor, with i from 0: what
/// `dropout` with this state keeps.
template <class Use>
void for_each_kept(const PhiloxState& state, double p, std::int64_t first, std::int64_t count,
                   const Use& use) {
  // uniform(word) = (word >> 8) / 2^24 >= p, in integers and so exact.
  const auto threshold = static_cast<std::uint32_t>(std::ceil(p * 16777216.0));
  std::uint32_t words[philox_chunk];
  for (std::int64_t base = first - first % 4; base < first + count; base += philox_chunk) {
    philox_words(state, static_cast<std::uint64_t>(base / 4), words);
    const std::int64_t begin = std::max(first, base);
    const std::int64_t end = std::min(first + count, base + philox_chunk);
    for (std::int64_t i = begin; i < end; ++i) use(i - first, (words[i - base] >> 8) >= threshold);
  }
}

}  // namespace norma::cpu_kernels
