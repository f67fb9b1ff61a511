// Loops over several operands of one shape with any strides (0 in broadcast dimensions).
#pragma once

#include "norma/core/shape.h"
#include "norma/ops/cpu/parallel.h"

#include <array>

namespace norma::cpu_kernels {

/// The dimensions of a loop over N strided operands, with neighbours merged where every operand
/// allows it: operands of one contiguous shape give one dimension, a row broadcast over a matrix
/// gives two.
template <std::size_t N>
class StridedLoop {
 public:
  StridedLoop(const Shape& shape, const std::array<Shape, N>& strides) : numel_(shape.numel()) {
    for (std::int64_t dim = shape.size() - 1; dim >= 0; --dim) {
      if (shape[dim] == 1) continue;
      if (rank_ > 0 && merges(dim, strides)) {
        sizes_[rank_ - 1] *= shape[dim];
        continue;
      }
      sizes_[rank_] = shape[dim];
      for (std::size_t k = 0; k < N; ++k) strides_[rank_][k] = strides[k][dim];
      ++rank_;
    }
    if (rank_ == 0) {
      sizes_[0] = 1;
      strides_[0].fill(1);
      rank_ = 1;
    }
  }

  /// Stride of operand k along the innermost dimension.
  std::int64_t inner_stride(std::size_t k) const { return strides_[0][k]; }

  /// Calls `body(begin, offsets, count)` for pieces of rows, in parallel: elements [begin, begin +
  /// count) of the row-major order, the first of which stands at offsets[k] in operand k.
  template <class Body>
  void run(const Body& body) const {
    parallel_for(numel_, 1, [&](std::int64_t begin, std::int64_t end) {
      std::array<std::int64_t, Shape::max_rank> at{};  // coordinates, innermost first
      std::array<std::int64_t, N> offsets{};
      std::int64_t rest = begin;
      for (std::size_t d = 0; d < rank_; ++d) {
        at[d] = rest % sizes_[d];
        rest /= sizes_[d];
        for (std::size_t k = 0; k < N; ++k) offsets[k] += at[d] * strides_[d][k];
      }
      while (begin < end) {
        const std::int64_t count = std::min(sizes_[0] - at[0], end - begin);
        body(begin, offsets, count);
        begin += count;
        if (begin == end) break;
        // The row is done: back to its start, then on to the next one.
        for (std::size_t k = 0; k < N; ++k) offsets[k] -= at[0] * strides_[0][k];
        at[0] = 0;
        for (std::size_t d = 1; d < rank_; ++d) {
          for (std::size_t k = 0; k < N; ++k) offsets[k] += strides_[d][k];
          if (++at[d] < sizes_[d]) break;
          for (std::size_t k = 0; k < N; ++k) offsets[k] -= at[d] * strides_[d][k];
          at[d] = 0;
        }
      }
    });
  }

 private:
  bool merges(std::int64_t dim, const std::array<Shape, N>& strides) const {
    for (std::size_t k = 0; k < N; ++k)
      if (strides[k][dim] != strides_[rank_ - 1][k] * sizes_[rank_ - 1]) return false;
    return true;
  }

  std::int64_t numel_;
  std::size_t rank_ = 0;
  std::array<std::int64_t, Shape::max_rank> sizes_{};  // innermost first
  std::array<std::array<std::int64_t, N>, Shape::max_rank> strides_{};
};

}  // namespace norma::cpu_kernels
