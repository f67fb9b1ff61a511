// The dimensions of a loop over operands of one shape with any strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace norma::cuda_kernels {

/// Sizes, and strides of each operand in elements, outermost first (runtime/strided.h makes it).
template <std::size_t operands>
struct StridedShape {
  static constexpr std::size_t max_rank = 8;
  int rank = 0;
  std::int64_t count = 1;  ///< elements in all
  std::array<std::int64_t, max_rank> sizes{};
  std::array<std::array<std::int64_t, max_rank>, operands> strides{};
};

}  // namespace norma::cuda_kernels
