// What the kernels of attention share: the products of tiles, and what becomes of a score.
//
// A block owns 64 rows and goes over the others 32 at a time. In the forward and for the gradient
// of the queries it owns queries and the others are keys; for the gradients of keys and values the
// other way round. A thread has 2 x 4 scores of the 64 x 32, and the same two rows of the sums that
// the block makes: what it does with its scores reaches the sums within the warp.
#pragma once

#include "norma/cuda/kernels/attention.h"
#include "norma/cuda/kernels/math.cuh"
#include "norma/cuda/kernels/rows_launch.cuh"
#include "norma/cuda/philox.cuh"

#include <limits>

namespace norma::cuda_kernels {

using device::accumulate_t;
using device::convert;

/// The block's tiles where sums have `columns` columns, and the place of a thread in them.
template <class C, int columns_>
struct Tile {
  static constexpr int own = 64, other = 32, threads = 256, columns = columns_;
  /// Scores of a thread; eight neighbours have the whole of two rows.
  static constexpr int rows = 2, cols = 4, lanes = other / cols;
  static constexpr int vec = 16 / static_cast<int>(sizeof(C));
  /// Columns of the factors of a score that are in shared memory at a time.
  static constexpr int depth = 128 / static_cast<int>(sizeof(C));
  // One vector more than the row has: neighbouring rows begin in different banks.
  static constexpr int depth_stride = depth + vec, weight_stride = other + vec;
  /// Columns of the sums of a thread: vectors that lie `lanes` vectors apart.
  static constexpr int sums = columns / lanes, vectors = sums / vec;
  /// Blocks that a multiprocessor has registers for, where threads keep one array of sums.
  static constexpr int resident = sizeof(C) == 4 ? 2 : 1;

  int lane = static_cast<int>(threadIdx.x) % lanes;
  /// The thread's first row, and its first score in it.
  int row = static_cast<int>(threadIdx.x) / lanes * rows, col = lane * cols;
};
template <class Tile, class C>
using Scores = C[Tile::rows][Tile::cols];
template <class Tile, class C>
using Sums = C[Tile::rows][Tile::sums];

/// Rows of one head from `first` on, at most `most`.
template <class T>
struct TileRows {
  __device__ __forceinline__ TileRows(const Heads<const T>& x, std::int64_t b, std::int64_t h,
                                      std::int64_t first, std::int64_t length, int most)
      : data(x.at(b, h, first)),
        stride(x.row),
        count(static_cast<int>(length - first < most ? length - first : most)) {}
  const T* data;
  std::int64_t stride;
  int count;
};

/// Columns [first, first + columns) of rows for which `exists(row)`, else zeros, to row `slot(row)`
/// of shared memory.
template <class Tile, int rows, int columns, int to_stride, class T, class C, class Exists,
          class Slot>
__device__ __forceinline__ void fetch(const TileRows<T>& from, std::int64_t first,
                                      std::int64_t width, C* to, const Exists& exists,
                                      const Slot& slot) {
  constexpr int step = Tile::threads / columns;
  const int column = static_cast<int>(threadIdx.x) % columns;
  const bool inside = first + column < width;
  const T* const data = from.data + first + column;
  for (int row = static_cast<int>(threadIdx.x) / columns; row < rows; row += step)
    to[slot(row) * to_stride + column] =
        inside && exists(row) ? convert<C>(data[row * from.stride]) : C(0);
}

/// The rows of `from` that `present` has a bit for, to be summed: all columns of the sums from
/// `first` on.
template <class Tile, class T, class C>
__device__ __forceinline__ void fetch_summands(const TileRows<T>& from, unsigned present,
                                               std::int64_t first, std::int64_t width, C* to) {
  fetch<Tile, Tile::other, Tile::columns, Tile::columns>(
      from, first, width, to, [=](int row) { return (present >> row & 1u) != 0; },
      [](int row) { return row; });
}
/// A bit for each of the first `count` rows.
__device__ __forceinline__ unsigned first_bits(int count) {
  return count < 32 ? (1u << count) - 1u : ~0u;
}

/// products[r][c] = own row r of the thread times other row c of it. Begins by writing to shared
/// memory: a barrier stands before.
template <class Tile, class T, class C>
__device__ __forceinline__ void multiply(const Tile& at, const TileRows<T>& own,
                                         const TileRows<T>& other, std::int64_t width, C* stage_own,
                                         C* stage_other, Scores<Tile, C>& products) {
  using Vector = device::Vector<C, Tile::vec>;
  NORMA_UNROLL
  for (int r = 0; r < Tile::rows; ++r) {
    NORMA_UNROLL
    for (int c = 0; c < Tile::cols; ++c) products[r][c] = C(0);
  }
  for (std::int64_t first = 0; first < width; first += Tile::depth) {
    if (first > 0) __syncthreads();
    fetch<Tile, Tile::own, Tile::depth, Tile::depth_stride>(
        own, first, width, stage_own, [&](int row) { return row < own.count; },
        [](int row) { return row; });
    // Row c of neighbouring threads side by side: again different banks.
    fetch<Tile, Tile::other, Tile::depth, Tile::depth_stride>(
        other, first, width, stage_other, [&](int row) { return row < other.count; },
        [](int row) { return row % Tile::cols * Tile::lanes + row / Tile::cols; });
    __syncthreads();
    const int depth = static_cast<int>(width - first < Tile::depth ? width - first : Tile::depth);
    for (int d = 0; d < depth; d += Tile::vec) {
      Vector a[Tile::rows], b[Tile::cols];
      NORMA_UNROLL
      for (int r = 0; r < Tile::rows; ++r)
        a[r] = device::load<Tile::vec>(stage_own + (at.row + r) * Tile::depth_stride + d);
      NORMA_UNROLL
      for (int c = 0; c < Tile::cols; ++c)
        b[c] = device::load<Tile::vec>(stage_other +
                                       (c * Tile::lanes + at.lane) * Tile::depth_stride + d);
      NORMA_UNROLL
      for (int e = 0; e < Tile::vec; ++e) {
        NORMA_UNROLL
        for (int r = 0; r < Tile::rows; ++r) {
          NORMA_UNROLL
          for (int c = 0; c < Tile::cols; ++c) products[r][c] += a[r][e] * b[c][e];
        }
      }
    }
  }
}

/// sums += weights of the thread's rows times the summands, `count` rows of them. The weights go
/// through shared memory, to the threads of their rows, which are of one warp.
template <class Tile, class C>
__device__ __forceinline__ void accumulate(const Tile& at, const Scores<Tile, C>& weights,
                                           int count, C* weight_rows, const C* summands,
                                           Sums<Tile, C>& sums) {
  using Vector = device::Vector<C, Tile::vec>;
  C* const own = weight_rows + at.row * Tile::weight_stride;
  __syncwarp();
  NORMA_UNROLL
  for (int r = 0; r < Tile::rows; ++r) {
    NORMA_UNROLL
    for (int c = 0; c < Tile::cols; ++c) own[r * Tile::weight_stride + at.col + c] = weights[r][c];
  }
  __syncwarp();
  for (int j = 0; j < count; j += Tile::vec) {
    Vector weight[Tile::rows];
    NORMA_UNROLL
    for (int r = 0; r < Tile::rows; ++r)
      weight[r] = device::load<Tile::vec>(own + r * Tile::weight_stride + j);
    NORMA_UNROLL
    for (int e = 0; e < Tile::vec; ++e) {
      NORMA_UNROLL
      for (int k = 0; k < Tile::vectors; ++k) {
        const Vector x = device::load<Tile::vec>(summands + (j + e) * Tile::columns +
                                                 (k * Tile::lanes + at.lane) * Tile::vec);
        NORMA_UNROLL
        for (int r = 0; r < Tile::rows; ++r) {
          NORMA_UNROLL
          for (int i = 0; i < Tile::vec; ++i) sums[r][k * Tile::vec + i] += weight[r][e] * x[i];
        }
      }
    }
  }
}

/// Calls use(column, sum) for the sums of row r of the thread, the block's first column being
/// `first`, up to `width`.
template <class Tile, class C, class Use>
__device__ __forceinline__ void for_each_sum(const Tile& at, const Sums<Tile, C>& sums, int r,
                                             std::int64_t first, std::int64_t width,
                                             const Use& use) {
  NORMA_UNROLL
  for (int k = 0; k < Tile::vectors; ++k) {
    NORMA_UNROLL
    for (int i = 0; i < Tile::vec; ++i) {
      const std::int64_t column = first + (k * Tile::lanes + at.lane) * Tile::vec + i;
      if (column < width) use(column, sums[r][k * Tile::vec + i]);
    }
  }
}

/// Bit j: key `first` + j is there and not padding. The same in every thread; whole warps take
/// part.
template <class T>
__device__ __forceinline__ unsigned present_keys(const Attention<T>& a, std::int64_t b,
                                                 std::int64_t first) {
  const std::int64_t key = first + static_cast<int>(threadIdx.x) % device::warp_size;
  return __ballot_sync(device::all_lanes,
                       key < a.keys && (a.padding == nullptr || !a.padding[b * a.keys + key]));
}

/// What becomes of the scores of one query head.
template <class T>
class ScoreRule {
 public:
  using C = accumulate_t<T>;
  __device__ __forceinline__ ScoreRule(const Attention<T>& a, std::int64_t b, std::int64_t h)
      : a_(a),
        mask_(a.mask == nullptr ? nullptr : a.mask + b * a.mask_strides[0] + h * a.mask_strides[1]),
        first_word_((b * a.heads + h) * a.queries * a.keys) {}

  /// Of queries and keys that are there.
  __device__ __forceinline__ bool sees(std::int64_t i, std::int64_t j) const {
    return !a_.causal || j <= i;
  }
  /// Scaled, capped and masked; `slope` becomes what the cap makes of a change.
  __device__ __forceinline__ C score(C product, std::int64_t i, std::int64_t j, C& slope) const {
    C s = product * static_cast<C>(a_.scale);
    slope = C(1);
    if (a_.softcap > 0.0) {
      const C cap = static_cast<C>(a_.softcap);
      const C t = DeviceMath::tanh(s / cap);
      s = cap * t;
      slope = C(1) - t * t;
    }
    if (mask_ != nullptr) s += convert<C>(mask_[i * a_.mask_strides[2] + j * a_.mask_strides[3]]);
    return s;
  }
  /// Word of the random stream that decides about the weight.
  __device__ __forceinline__ std::int64_t word(std::int64_t i, std::int64_t j) const {
    return first_word_ + i * a_.keys + j;
  }

 private:
  const Attention<T>& a_;
  const T* mask_;
  std::int64_t first_word_;
};

/// What dropout multiplies weights with. It lives for the scores of one tile, not to hold registers
/// beside sums; neighbouring keys one after the other share work.
template <class C>
class Dropout {
 public:
  template <class T>
  __device__ __forceinline__ explicit Dropout(const Attention<T>& a)
      : on_(a.dropout_p > 0.0),
        mask_(a.philox, a.dropout_p),
        kept_(device::dropout_scale<C>(a.dropout_p)) {}
  __device__ __forceinline__ C operator()(std::int64_t word) {
    return !on_ ? C(1) : mask_.keeps(word) ? kept_ : C(0);
  }

 private:
  bool on_;
  device::DropoutMask mask_;
  C kept_;
};

/// The block's part of the work: blocks of one head side by side, for they read the same rows.
struct TileIndex {
  __device__ __forceinline__ TileIndex(std::int64_t tiles, std::int64_t chunks, std::int64_t heads)
      : tile(blockIdx.x % tiles),
        chunk(blockIdx.x / tiles % chunks),
        head(blockIdx.x / tiles / chunks % heads),
        batch(blockIdx.x / tiles / chunks / heads) {}
  std::int64_t tile, chunk, head, batch;
};
inline std::int64_t tiles_of(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

/// Calls use.operator()<columns>() with the columns of a block's sums; wider heads take several
/// blocks, which make the scores anew.
template <class T, class Use>
void with_columns(std::int64_t width, const Use& use) {
  if (width <= 32) return use.template operator()<32>();
  if constexpr (sizeof(T) < 8)
    if (width > 64) return use.template operator()<128>();
  use.template operator()<64>();
}

}  // namespace norma::cuda_kernels
