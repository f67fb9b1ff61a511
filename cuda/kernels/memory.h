// Filling and copying on the device.
#pragma once

#include <array>
#include <cstdint>

namespace norma::cuda_kernels {

/// Dimensions of a copy and their strides, in elements, outermost first.
struct CopyShape {
  static constexpr int max_rank = 8;
  int rank = 0;
  std::int64_t count = 1;  ///< elements in all
  std::array<std::int64_t, max_rank> sizes{}, to{}, from{};
};

template <class T>
void fill(T* out, std::int64_t count, T value, void* stream);
/// With conversion of the elements.
template <class To, class From>
void copy(To* to, const From* from, const CopyShape& shape, void* stream);

}  // namespace norma::cuda_kernels
