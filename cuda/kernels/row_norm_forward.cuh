// Forward of the row norms.
//
// Rows of up to 32 KiB stay in registers between the statistics and the output: x is read once, and
// the variance is that of differences from the mean.
// A row belongs to a group of threads, as small as the row allows; small groups need no barrier.
// Wider rows are read twice: the second time mostly from the cache.
#pragma once

#include "norma/cuda/kernels/reduce.cuh"
#include "norma/cuda/kernels/row_norm_math.cuh"
#include "norma/cuda/kernels/rows.cuh"

namespace norma::cuda_kernels {

/// What a kernel knows at compile time. General reads everything from the parameters; the two
/// others are LayerNorm and RMSNorm with weights of the width of the row.
struct PlainRow {
  static constexpr bool general = false;
  __device__ static constexpr bool centred(const RowNormParams&) { return false; }
};
struct CentredRow {
  static constexpr bool general = false;
  __device__ static constexpr bool centred(const RowNormParams&) { return true; }
};
struct GeneralRow {
  static constexpr bool general = true;
  __device__ static bool centred(const RowNormParams& p) { return p.centred; }
};

/// Whether a kernel has dropout: those of 16-byte accesses, and the general ones.
template <class Kind, class T, class G>
inline constexpr bool takes_dropout = Kind::general || G::vec * sizeof(T) == 16;

/// Statistics of a row. Every thread of the block calls it.
template <class Kind, class C, class T, class G, class Sum>
__device__ __forceinline__ RowStatistics<C> row_statistics(const RowPart<T, G>& x,
                                                           std::int64_t width,
                                                           const RowNormParams& p,
                                                           const Place<G>& place, Sum& sum) {
  if (Kind::centred(p)) {
    const C n = static_cast<C>(width);
    C total = 0;
    visit_rows<C>(
        width, place, [&](Element, C value) { total += value; }, x);
    const C mean = sum(total) / n;
    // The corrected two-pass algorithm, as on the CPU: what rounding lost of the mean comes out of
    // the differences.
    C sums[2] = {0, 0};
    visit_rows<C>(
        width, place,
        [&](Element, C value) {
          const C d = value - mean;
          sums[0] += d;
          sums[1] += d * d;
        },
        x);
    sum(sums);
    const C rest = sums[0] / n;
    return {mean, rest, reciprocal_divisor<C>(sums[1] / n - rest * rest, p)};
  }
  const C divisor = static_cast<C>(p.divisor);
  if constexpr (Kind::general) {
    C sums[2] = {0, 0};
    visit_rows<C>(
        width, place,
        [&](Element at, C value) {
          sums[0] += value;
          if (at.column < p.statistic_width) sums[1] += value * value;
        },
        x);
    sum(sums);
    if (p.compressed)
      return {sums[0], C(0), reciprocal_divisor<C>((sums[1] + sums[0] * sums[0]) / divisor, p)};
    return {C(0), C(0), reciprocal_divisor<C>(sums[1] / divisor, p)};
  } else {
    C squares = 0;
    visit_rows<C>(
        width, place, [&](Element, C value) { squares += value * value; }, x);
    return {C(0), C(0), reciprocal_divisor<C>(sum(squares) / divisor, p)};
  }
}

/// x becomes alpha * residual + dropout(x), in the dtype of x, and is written to `sum`.
template <class Kind, class T, class G>
__device__ __forceinline__ void add_residual(RowPart<T, G>& x, const RowNormForward<T>& a,
                                             std::int64_t row, const Place<G>& place) {
  using C = statistic_t<T>;
  const RowNormParams& p = a.params;
  const std::int64_t first = row * a.shape.width;
  const C alpha = static_cast<C>(p.alpha);
  RowPart<T, G> residual;
  residual.load(a.residual + first, a.shape.width, place);
  if (takes_dropout<Kind, T, G> && p.dropout_p != 0.0) {
    DropoutMask mask(p.philox, p.dropout_p);
    const C scale = dropout_scale<C>(p.dropout_p);
    for_each_element(a.shape.width, place, [&](int v, int e, std::int64_t column) {
      const C value = mask.keeps(first + column) ? convert<C>(x.vectors[v][e]) * scale : C(0);
      x.vectors[v][e] = convert<T>(alpha * convert<C>(residual.vectors[v][e]) + value);
    });
  } else {
    for_each_element(a.shape.width, place, [&](int v, int e, std::int64_t) {
      x.vectors[v][e] =
          convert<T>(alpha * convert<C>(residual.vectors[v][e]) + convert<C>(x.vectors[v][e]));
    });
  }
  NORMA_UNROLL
  for (int v = 0; v < G::vectors; ++v)
    if (place.column(v) < a.shape.width)
      device::store<G::vec>(a.sum + first + place.column(v), x.vectors[v]);
}

/// Rows in registers.
template <class T, class Kind, class G>
__global__ void __launch_bounds__(G::threads) row_norm_forward_kernel(RowNormForward<T> a) {
  using C = statistic_t<T>;
  using Sum = GroupSum<G::group, C>;
  NORMA_SHARED(C, scratch, Sum::scratch_count);
  Sum sum(scratch);
  const RowNormParams& p = a.params;
  const std::int64_t width = a.shape.width;
  const Place<G> place;
  const std::int64_t first_row =
      static_cast<std::int64_t>(blockIdx.x) * G::block_rows + place.group;

  // All loads stand before the first sum: their latencies overlap.
  RowPart<T, G> x[G::rows];
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    x[k].load(a.x + row * width, width, place, row < a.shape.rows);
  }
  // 32 elements of 16 bits, beside as many of both weights, are more than the registers of 512
  // threads: those read their weights, which the caches hold, where they need them.
  constexpr bool keeps_weights = G::group < 512 || G::elements < 32;
  RowPart<T, G, keeps_weights> weight, bias;
  if constexpr (!Kind::general) {
    if (a.weight != nullptr) weight.load(a.weight, width, place);
    if (a.bias != nullptr) bias.load(a.bias, width, place);
  }

  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    const bool active = row < a.shape.rows;  // not a branch: sums need every thread
    if (a.residual != nullptr && active) add_residual<Kind>(x[k], a, row, place);
    const RowStatistics<C> s = row_statistics<Kind, C>(x[k], width, p, place, sum);
    if (!active) continue;
    if (place.lane == 0) {
      if (a.mean != nullptr) a.mean[row] = s.mean + s.rest;
      if (a.rstd != nullptr) a.rstd[row] = s.rstd;
    }
    const C centre = Kind::centred(p) ? s.mean : C(0);
    const std::int64_t weight_row = Kind::general ? weight_row_offset(row, a.shape, p) : 0;
    const std::int64_t segment = Kind::general ? a.shape.segment() : 1;
    // One vector after the other: a whole row of results would not fit beside x.
    for_each_vector(width, place, [&](int v, std::int64_t column) {
      device::Vector<T, G::vec> out, gains, shifts;
      if constexpr (!Kind::general) {
        if (a.weight != nullptr) gains = weight.vector(v, column);
        if (a.bias != nullptr) shifts = bias.vector(v, column);
      }
      NORMA_UNROLL
      for (int e = 0; e < G::vec; ++e) {
        C d = convert<C>(x[k].vectors[v][e]);
        if (Kind::centred(p)) d = (d - centre) - s.rest;
        C y = shaped<T, Kind::general>(d * s.rstd, p);
        if constexpr (Kind::general) {
          const std::int64_t i = weight_row + (column + e) / segment;
          y *= a.weight != nullptr ? gain_of(convert<C>(a.weight[i]), p) : static_cast<C>(p.scale);
          if (a.bias != nullptr) y += static_cast<C>(p.scale) * convert<C>(a.bias[i]);
        } else {
          y *= a.weight != nullptr ? gain_of(convert<C>(gains[e]), p) : static_cast<C>(p.scale);
          if (a.bias != nullptr) y += static_cast<C>(p.scale) * convert<C>(shifts[e]);
        }
        out[e] = convert<T>(y);
      }
      device::store<G::vec>(a.out + row * width + column, out);
    });
  }
}

inline constexpr int streaming_threads = 512;

/// Calls use(column) for every column of the thread in a row of any width, neighbours next to each
/// other.
template <int threads = streaming_threads, class Use>
__device__ __forceinline__ void for_each_column(std::int64_t width, const Use& use) {
  for (std::int64_t column = threadIdx.x; column < width; column += threads) use(column);
}

/// Rows of any width: one block a row, read twice. Statistics are of the distances from the mean of
/// the first elements, so that a large mean does not matter here either.
template <class T>
__global__ void __launch_bounds__(streaming_threads)
    row_norm_forward_streaming_kernel(RowNormForward<T> a) {
  using C = statistic_t<T>;
  using Sum = GroupSum<streaming_threads, C>;
  NORMA_SHARED(C, scratch, Sum::scratch_count);
  NORMA_SHARED(C, moments_scratch, 3 * streaming_threads / warp_size);
  const RowNormParams& p = a.params;
  const std::int64_t width = a.shape.width;
  const std::int64_t row = blockIdx.x;
  const T* x = a.x + row * width;
  if (a.residual != nullptr) {
    // A thread reads back only what it wrote itself: no barrier.
    const T* const residual = a.residual + row * width;
    T* const total = a.sum + row * width;
    const C alpha = static_cast<C>(p.alpha);
    DropoutMask mask(p.philox, p.dropout_p);
    for_each_column(width, [&](std::int64_t i) {
      C value = convert<C>(x[i]);
      if (p.dropout_p != 0.0)
        value = mask.keeps(row * width + i) ? value * dropout_scale<C>(p.dropout_p) : C(0);
      total[i] = convert<T>(alpha * convert<C>(residual[i]) + value);
    });
    x = total;
  }

  RowStatistics<C> s;
  Sum sum(scratch);
  if (p.centred) {
    const std::int64_t count_of_first = width < streaming_threads ? width : streaming_threads;
    const bool is_first = threadIdx.x < count_of_first;
    const C centre =
        sum(is_first ? convert<C>(x[threadIdx.x]) : C(0)) / static_cast<C>(count_of_first);
    // Eight values to a merge, for a merge divides.
    constexpr int chunk = 8;
    Moments<C> part = {0, 0, 0};
    for (std::int64_t begin = threadIdx.x; begin < width; begin += chunk * streaming_threads) {
      C values[chunk];
      C count = 0, total = 0, m2 = 0;
      NORMA_UNROLL
      for (int j = 0; j < chunk; ++j) {
        const std::int64_t i = begin + j * streaming_threads;
        values[j] = i < width ? convert<C>(x[i]) - centre : C(0);
        total += values[j];
        count += i < width ? C(1) : C(0);
      }
      const C mean = total / count;
      NORMA_UNROLL
      for (int j = 0; j < chunk; ++j) {
        const C d = begin + j * streaming_threads < width ? values[j] - mean : C(0);
        m2 += d * d;
      }
      part = merge(part, {count, mean, m2});
    }
    const Moments<C> all = merge_block<streaming_threads>(part, moments_scratch);
    s = {centre, all.mean, reciprocal_divisor<C>(all.m2 / static_cast<C>(width), p)};
  } else {
    C sums[2] = {0, 0};
    for_each_column(width, [&](std::int64_t i) {
      const C value = convert<C>(x[i]);
      sums[0] += value;
      if (i < p.statistic_width) sums[1] += value * value;
    });
    sum(sums);
    const C squares = p.compressed ? sums[1] + sums[0] * sums[0] : sums[1];
    s = {p.compressed ? sums[0] : C(0), C(0),
         reciprocal_divisor<C>(squares / static_cast<C>(p.divisor), p)};
  }
  if (threadIdx.x == 0) {
    if (a.mean != nullptr) a.mean[row] = s.mean + s.rest;
    if (a.rstd != nullptr) a.rstd[row] = s.rstd;
  }

  const C centre = p.centred ? s.mean : C(0);
  const std::int64_t weight_row = weight_row_offset(row, a.shape, p);
  const std::int64_t segment = a.shape.segment();
  T* const out = a.out + row * width;
  for_each_column(width, [&](std::int64_t column) {
    const std::int64_t i = weight_row + column / segment;
    C y = shaped<T, true>(((convert<C>(x[column]) - centre) - s.rest) * s.rstd, p);
    y *= a.weight != nullptr ? gain_of(convert<C>(a.weight[i]), p) : static_cast<C>(p.scale);
    if (a.bias != nullptr) y += static_cast<C>(p.scale) * convert<C>(a.bias[i]);
    out[column] = convert<T>(y);
  });
}

}  // namespace norma::cuda_kernels
