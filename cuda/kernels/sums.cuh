// Sums over rows in a fixed order: partial sums of blocks, and the kernels that add them up.
#pragma once

#include "norma/cuda/kernels/reduce.cuh"
#include "norma/cuda/kernels/row_norm.h"
#include "norma/cuda/kernels/rows_launch.cuh"

namespace norma::cuda_kernels {

using device::convert;

/// Adds the partial sums of the groups of a block in a fixed order and writes them: values of the
/// columns of the block's rows. `scratch` has threads / 32 * capacity elements where a block has
/// several groups.
template <class G, class C>
__device__ void write_partial_sums(C (&sums)[G::elements], std::int64_t width,
                                   const Place<G>& place, C* scratch, C* out) {
  if constexpr (G::groups == 1) {
    for_each_element(width, place, [&](int v, int e, std::int64_t column) {
      out[column] = sums[v * G::vec + e];
    });
  } else {
    NORMA_UNROLL
    for (int i = 0; i < G::elements; ++i) {
      NORMA_UNROLL
      for (int step = G::group; step < warp_size; step *= 2)
        sums[i] += __shfl_xor_sync(all_lanes, sums[i], step);
    }
    const int warp = static_cast<int>(threadIdx.x) / warp_size;
    if (static_cast<int>(threadIdx.x) % warp_size < G::group)
      for_each_element(width, place, [&](int v, int e, std::int64_t column) {
        scratch[warp * G::capacity + column] = sums[v * G::vec + e];
      });
    __syncthreads();
    for (std::int64_t column = threadIdx.x; column < width; column += G::threads) {
      C total = 0;
      for (int w = 0; w < G::threads / warp_size; ++w) total += scratch[w * G::capacity + column];
      out[column] = total;
    }
    __syncthreads();
  }
}

inline constexpr int tile_columns = 32;
inline constexpr int tile_rows = 8;

/// out[w, i] = scale * sum over p of parts[w, p, i], in the order of 8 warps: warp y adds every 8th
/// part, and the warps' sums are added in their order.
template <class C, class Out>
__global__ void __launch_bounds__(tile_columns* tile_rows)
    sum_parts_kernel(const C* parts, std::int64_t count, std::int64_t width, C scale, Out* out) {
  NORMA_SHARED(C, scratch, tile_columns * tile_rows);
  const std::int64_t tiles = (width + tile_columns - 1) / tile_columns;
  const std::int64_t w = blockIdx.x / tiles;
  const std::int64_t column = blockIdx.x % tiles * tile_columns + threadIdx.x;
  C sum = 0;
  if (column < width)
    for (std::int64_t part = threadIdx.y; part < count; part += tile_rows)
      sum += parts[(w * count + part) * width + column];
  scratch[threadIdx.y * tile_columns + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < width) {
    C total = 0;
    for (int y = 0; y < tile_rows; ++y)
      total += scratch[y * tile_columns + static_cast<int>(threadIdx.x)];
    out[w * width + column] = convert<Out>(scale * total);
  }
}

inline constexpr int segment_threads = 128;

/// out[i] = scale * sum of the segment i of x: one block each.
template <class C, class Out>
__global__ void __launch_bounds__(segment_threads)
    sum_segments_kernel(const C* x, std::int64_t segment, C scale, Out* out) {
  using Sum = GroupSum<segment_threads, C>;
  NORMA_SHARED(C, scratch, Sum::scratch_count);
  Sum sum(scratch);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * segment;
  C total = 0;
  for (std::int64_t i = threadIdx.x; i < segment; i += segment_threads) total += x[first + i];
  total = sum(total);
  if (threadIdx.x == 0) out[blockIdx.x] = convert<Out>(scale * total);
}

template <class T>
__global__ void fill_zero_kernel(T* out, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = T{};
}

inline constexpr int fill_threads = 256;

template <class T>
void fill_zero(T* out, std::int64_t count, void* stream) {
  if (out == nullptr || count == 0) return;
  device::launch({.name = "fill_zero",
                  .grid = {blocks_for(count, fill_threads)},
                  .block = {fill_threads},
                  .stream = stream},
                 fill_zero_kernel<T>, out, count);
}

/// out[i] = scale * sum of x[i, 0 … segment - 1] for i < count.
template <class T>
void sum_segments(const statistic_t<T>* x, std::int64_t count, std::int64_t segment, double scale,
                  T* out, void* stream) {
  using C = statistic_t<T>;
  device::launch({.name = "sum_segments",
                  .grid = {static_cast<unsigned>(count)},
                  .block = {segment_threads},
                  .stream = stream},
                 sum_segments_kernel<C, T>, x, segment, static_cast<C>(scale), out);
}

/// out [weight_rows, columns] = scale * partial sums [weight_rows, count, width]; `buffer`
/// [weight_rows, width] is used where a column covers several elements.
template <class T>
void finish_sums(const statistic_t<T>* parts, std::int64_t count, const RowNormShape& s,
                 double scale, statistic_t<T>* buffer, T* out, void* stream) {
  using C = statistic_t<T>;
  const unsigned tiles = blocks_for(s.width, tile_columns) * static_cast<unsigned>(s.weight_rows);
  const device::LaunchConfig config{
      .name = "sum_parts", .grid = {tiles}, .block = {tile_columns, tile_rows}, .stream = stream};
  if (s.segment() == 1) {
    device::launch(config, sum_parts_kernel<C, T>, parts, count, s.width, static_cast<C>(scale),
                   out);
    return;
  }
  device::launch(config, sum_parts_kernel<C, C>, parts, count, s.width, C(1), buffer);
  sum_segments<T>(buffer, s.weight_rows * s.columns, s.segment(), scale, out, stream);
}

}  // namespace norma::cuda_kernels
