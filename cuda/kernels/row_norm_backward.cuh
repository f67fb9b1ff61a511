// Backward of the row norms.
//
// One persistent kernel reads x and dy once, writes dx (with the gradient of the sum folded in) and
// keeps the sums for dweight and dbias of its rows in registers; each block leaves one row of
// partial sums, and a second kernel adds these up in a fixed order. Which rows a block takes, and
// how many blocks there are, depends on the shape alone: results repeat bit for bit, on every GPU.
//
// Rows too wide for that, weights that are not one row, and the rarer norms take dx first and their
// sums from a kernel over columns, which reads x and dy once more (path_of in row_norm_launch.cuh).
#pragma once

#include "norma/cuda/kernels/row_norm_forward.cuh"
#include "norma/cuda/kernels/row_norm_plan.h"
#include "norma/cuda/kernels/sums.cuh"

namespace norma::cuda_kernels {

/// What of g and h becomes a gradient of a row: mean(g), and how much of v is taken.
template <class C>
struct RowGradient {
  C mean_g, share;
};

template <class Kind, class C, class Sum>
__device__ __forceinline__ RowGradient<C> row_gradient(C sum_g, C sum_gh, C r, std::int64_t width,
                                                       const RowNormParams& p, Sum& sum) {
  C sums[2] = {sum_gh, sum_g};
  if (Kind::centred(p)) {
    sum(sums);
    return {sums[1] / static_cast<C>(width), projection<C>(sums[0], r, p)};
  }
  return {C(0), projection<C>(sum(sum_gh), r, p)};
}

/// dx (before dropout) of one element; `mean` as in RowStatistics.
template <class Kind, class C>
__device__ __forceinline__ C element_gradient(C g, C h, const RowGradient<C>& row, C mean, C r,
                                              std::int64_t column, const RowNormParams& p) {
  if constexpr (Kind::general) {
    if (!p.centred && column >= p.statistic_width) return r * g;
    if (p.compressed) h += mean * r;
  }
  return r * ((g - row.mean_g) - h * row.share);
}

/// g / dy: what shaping and gain make of a gradient.
template <class Kind, class C>
__device__ __forceinline__ C slope_of(C h, const RowNormParams& p) {
  if constexpr (Kind::general)
    if (p.detached_slope != 0.0) return C(1) - static_cast<C>(p.detached_slope) * h;
  return C(1);
}

/// Rows in registers. `weight_parts` and `bias_parts` [blocks, width] may be null; only kinds that
/// are not general, in groups of at most 256, have them.
template <class T, class Kind, class G>
__global__ void __launch_bounds__(G::threads)
    row_norm_backward_kernel(RowNormBackward<T> a, statistic_t<T>* weight_parts,
                             statistic_t<T>* bias_parts) {
  using C = statistic_t<T>;
  using Sum = GroupSum<G::group, C>;
  constexpr bool accumulates = !Kind::general && G::group <= 256;
  NORMA_SHARED(C, scratch, Sum::scratch_count);
  Sum sum(scratch);
  const RowNormParams& p = a.params;
  const std::int64_t width = a.shape.width;
  const Place<G> place;
  const bool wants_rows = a.dx != nullptr || a.dresidual != nullptr;

  RowPart<T, G> weight;
  if constexpr (!Kind::general)
    if (a.weight != nullptr) weight.load(a.weight, width, place);
  C weight_sums[accumulates ? G::elements : 1] = {};
  C bias_sums[accumulates ? G::elements : 1] = {};

  // The same number of rounds for every group of the block: there are barriers inside.
  for (std::int64_t base = static_cast<std::int64_t>(blockIdx.x) * G::block_rows;
       base < a.shape.rows; base += static_cast<std::int64_t>(gridDim.x) * G::block_rows) {
    RowPart<T, G> x[G::rows], dy[G::rows];
    C mean[G::rows], rstd[G::rows];
    NORMA_UNROLL
    for (int k = 0; k < G::rows; ++k) {
      const std::int64_t row = base + k * G::groups + place.group;
      const bool active = row < a.shape.rows;
      x[k].load(a.x + row * width, width, place, active);
      dy[k].load(a.dy + row * width, width, place, active);
      mean[k] = active && a.mean != nullptr ? a.mean[row] : C(0);
      rstd[k] = active ? a.rstd[row] : C(0);
    }
    NORMA_UNROLL
    for (int k = 0; k < G::rows; ++k) {
      const std::int64_t row = base + k * G::groups + place.group;
      const bool active = row < a.shape.rows;
      const C m = mean[k], r = rstd[k];
      const C centre = Kind::centred(p) ? m : C(0);
      const std::int64_t weight_row = Kind::general ? weight_row_offset(row, a.shape, p) : 0;
      const std::int64_t segment = Kind::general ? a.shape.segment() : 1;
      const auto normalized = [&](int v, int e) {
        return (convert<C>(x[k].vectors[v][e]) - centre) * r;
      };
      const auto gradient = [&](int v, int e, std::int64_t column, C h) {
        C gain = static_cast<C>(p.scale);
        if constexpr (Kind::general) {
          if (a.weight != nullptr)
            gain = gain_of(convert<C>(a.weight[weight_row + column / segment]), p);
        } else {
          if (a.weight != nullptr) gain = gain_of(convert<C>(weight.vectors[v][e]), p);
        }
        return convert<C>(dy[k].vectors[v][e]) * gain * slope_of<Kind>(h, p);
      };
      C sum_g = 0, sum_gh = 0;
      if (active) {
        for_each_element(width, place, [&](int v, int e, std::int64_t column) {
          const C h = normalized(v, e);
          if constexpr (accumulates) {
            const C d = convert<C>(dy[k].vectors[v][e]);
            weight_sums[v * G::vec + e] += d * h;
            bias_sums[v * G::vec + e] += d;
          }
          const C g = gradient(v, e, column, h);
          sum_g += g;
          sum_gh += g * h;
        });
      }
      if (!wants_rows) continue;
      const RowGradient<C> row_parts = row_gradient<Kind>(sum_g, sum_gh, r, width, p, sum);
      if (!active) continue;

      const std::int64_t first = row * width;
      // All its loads before the first store, which could be to the same place for all that nvcc
      // knows.
      RowPart<T, G> dsum;
      if (a.dsum != nullptr) dsum.load(a.dsum + first, width, place);
      DropoutMask mask(p.philox, p.dropout_p);
      const C alpha = static_cast<C>(p.alpha);
      // One vector after the other: a whole row of results would not fit beside x and dy.
      for_each_vector(width, place, [&](int v, std::int64_t column) {
        device::Vector<T, G::vec> dx, dresidual;
        NORMA_UNROLL
        for (int e = 0; e < G::vec; ++e) {
          const C h = normalized(v, e);
          const C g = gradient(v, e, column + e, h);
          C t = element_gradient<Kind>(g, h, row_parts, m, r, column + e, p);
          if (a.dsum != nullptr) t += convert<C>(dsum.vectors[v][e]);
          dresidual[e] = convert<T>(alpha * t);
          if (takes_dropout<Kind, T, G> && p.dropout_p != 0.0)
            t = mask.keeps(first + column + e) ? t * dropout_scale<C>(p.dropout_p) : C(0);
          dx[e] = convert<T>(t);
        }
        if (a.dx != nullptr) device::store<G::vec>(a.dx + first + column, dx);
        if (a.dresidual != nullptr) device::store<G::vec>(a.dresidual + first + column, dresidual);
      });
    }
  }

  if constexpr (accumulates) {
    NORMA_SHARED(C, totals, (G::groups == 1 ? 1 : G::threads / warp_size * G::capacity));
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * width;
    if (weight_parts != nullptr)
      write_partial_sums(weight_sums, width, place, totals, weight_parts + first);
    if (bias_parts != nullptr)
      write_partial_sums(bias_sums, width, place, totals, bias_parts + first);
  }
}

/// Half of the forward's, which would not have the registers for it.
inline constexpr int backward_streaming_threads = 256;

/// Rows of any width: one block a row, x and dy read twice. Without dweight and dbias.
template <class T>
__global__ void __launch_bounds__(backward_streaming_threads)
    row_norm_backward_streaming_kernel(RowNormBackward<T> a) {
  using C = statistic_t<T>;
  using Kind = GeneralRow;
  using Sum = GroupSum<backward_streaming_threads, C>;
  NORMA_SHARED(C, scratch, Sum::scratch_count);
  Sum sum(scratch);
  const RowNormParams& p = a.params;
  const std::int64_t width = a.shape.width;
  const std::int64_t row = blockIdx.x;
  const std::int64_t first = row * width;
  const C m = a.mean != nullptr ? a.mean[row] : C(0);
  const C r = a.rstd[row];
  const C centre = p.centred ? m : C(0);
  const std::int64_t weight_row = weight_row_offset(row, a.shape, p);
  const std::int64_t segment = a.shape.segment();
  const auto gradient = [&](std::int64_t column, C h) {
    const C gain = a.weight != nullptr
                       ? gain_of(convert<C>(a.weight[weight_row + column / segment]), p)
                       : static_cast<C>(p.scale);
    return convert<C>(a.dy[first + column]) * gain * slope_of<Kind>(h, p);
  };
  C sum_g = 0, sum_gh = 0;
  for_each_column<backward_streaming_threads>(width, [&](std::int64_t column) {
    const C h = (convert<C>(a.x[first + column]) - centre) * r;
    const C g = gradient(column, h);
    sum_g += g;
    sum_gh += g * h;
  });
  const RowGradient<C> row_parts = row_gradient<Kind>(sum_g, sum_gh, r, width, p, sum);
  DropoutMask mask(p.philox, p.dropout_p);
  for_each_column<backward_streaming_threads>(width, [&](std::int64_t column) {
    const C h = (convert<C>(a.x[first + column]) - centre) * r;
    C t = element_gradient<Kind>(gradient(column, h), h, row_parts, m, r, column, p);
    if (a.dsum != nullptr) t += convert<C>(a.dsum[first + column]);
    if (a.dresidual != nullptr)
      a.dresidual[first + column] = convert<T>(static_cast<C>(p.alpha) * t);
    if (p.dropout_p != 0.0)
      t = mask.keeps(first + column) ? t * dropout_scale<C>(p.dropout_p) : C(0);
    if (a.dx != nullptr) a.dx[first + column] = convert<T>(t);
  });
}

/// Sums of dy h factor and of dy over a part of the rows, for 32 columns: [weight_rows, parts,
/// width]. A block has 8 warps; each takes every 8th row.
template <class T>
__global__ void __launch_bounds__(tile_columns* tile_rows)
    row_norm_column_sums_kernel(RowNormBackward<T> a, RowParts parts, statistic_t<T>* weight_parts,
                                statistic_t<T>* bias_parts) {
  using C = statistic_t<T>;
  NORMA_SHARED(C, weight_scratch, tile_columns * tile_rows);
  NORMA_SHARED(C, bias_scratch, tile_columns * tile_rows);
  const RowNormParams& p = a.params;
  const std::int64_t width = a.shape.width;
  const std::int64_t tiles = (width + tile_columns - 1) / tile_columns;
  const std::int64_t task = blockIdx.x / tiles;
  const std::int64_t column = blockIdx.x % tiles * tile_columns + threadIdx.x;
  const std::int64_t weight_row = task / parts.parts;
  const std::int64_t begin = task % parts.parts * parts.rows_per_part;
  const std::int64_t share = a.shape.rows / a.shape.weight_rows;
  const std::int64_t end =
      begin + parts.rows_per_part < share ? begin + parts.rows_per_part : share;
  C weight_sum = 0, bias_sum = 0;
  if (column < width) {
    for (std::int64_t j = begin + threadIdx.y; j < end; j += tile_rows) {
      const std::int64_t row =
          (j / p.weight_repeat * a.shape.weight_rows + weight_row) * p.weight_repeat +
          j % p.weight_repeat;
      const C d = convert<C>(a.dy[row * width + column]);
      const C centre = p.centred ? a.mean[row] : C(0);
      const C h = (convert<C>(a.x[row * width + column]) - centre) * a.rstd[row];
      weight_sum += d * (h * slope_of<GeneralRow>(h, p));
      bias_sum += d;
    }
  }
  const int slot = static_cast<int>(threadIdx.y * tile_columns + threadIdx.x);
  weight_scratch[slot] = weight_sum;
  bias_scratch[slot] = bias_sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < width) {
    C weight_total = 0, bias_total = 0;
    for (int y = 0; y < tile_rows; ++y) {
      weight_total += weight_scratch[y * tile_columns + static_cast<int>(threadIdx.x)];
      bias_total += bias_scratch[y * tile_columns + static_cast<int>(threadIdx.x)];
    }
    if (weight_parts != nullptr) weight_parts[task * width + column] = weight_total;
    if (bias_parts != nullptr) bias_parts[task * width + column] = bias_total;
  }
}

}  // namespace norma::cuda_kernels
