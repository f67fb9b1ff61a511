// Backward of attention: the weights are made anew from the scores and the log-sum-exp of each
// query. One kernel sums the gradient of queries over keys, another those of keys and values over
// the queries of all their heads: both in a fixed order, without atomics.
#include "norma/cuda/kernels/attention_tile.cuh"
#include "norma/cuda/kernels/element.cuh"
#include "norma/cuda/kernels/reduce.cuh"

#include <algorithm>

namespace norma::cuda_kernels {

namespace {

/// delta = sum of out dout, which is the sum over keys of a weight times its gradient. A warp has a
/// row.
constexpr int delta_threads = 256, delta_rows = delta_threads / device::warp_size;
template <class T>
__global__ void __launch_bounds__(delta_threads)
    attention_delta_kernel(Attention<T> a, Heads<const T> out, Heads<const T> dout,
                           accumulate_t<T>* delta) {
  using C = accumulate_t<T>;
  const int lane = static_cast<int>(threadIdx.x) % device::warp_size;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * delta_rows +
                           static_cast<int>(threadIdx.x) / device::warp_size;
  if (row >= a.batch * a.heads * a.queries) return;
  const std::int64_t i = row % a.queries, h = row / a.queries % a.heads,
                     b = row / a.queries / a.heads;
  const T* const y = out.at(b, h, i);
  const T* const dy = dout.at(b, h, i);
  C total = 0;
  for (std::int64_t d = lane; d < a.value_width; d += device::warp_size)
    total += convert<C>(y[d]) * convert<C>(dy[d]);
  GroupSum<device::warp_size, C> sum(nullptr);
  total = sum(total);
  if (lane == 0) delta[row] = total;
}

/// Of a score that is seen: `weight` as it met the values, from its product; `change`, the gradient
/// of the scaled score, from that of the weight. `lse` and `delta` are the query's.
template <class T, class C>
__device__ __forceinline__ void differentiate(const ScoreRule<T>& rule, Dropout<C>& dropout,
                                              std::int64_t i, std::int64_t j, C lse, C delta,
                                              C& weight, C& change) {
  C slope;
  const C p = DeviceMath::exp(rule.score(weight, i, j, slope) - lse);
  const C kept = dropout(rule.word(i, j));
  weight = p * kept;
  change = p * (change * kept - delta) * slope;
}

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::threads, Tile::resident)
    attention_dq_kernel(Attention<T> a, AttentionGradients<T> d, std::int64_t tiles,
                        std::int64_t chunks) {
  using C = accumulate_t<T>;
  constexpr C infinity = std::numeric_limits<C>::infinity();
  NORMA_SHARED(C, stage_own, Tile::own * Tile::depth_stride);
  NORMA_SHARED(C, stage_other, Tile::other * Tile::depth_stride);
  NORMA_SHARED(C, weight_rows, Tile::own * Tile::weight_stride);
  NORMA_SHARED(C, summands, Tile::other * Tile::columns);
  const Tile at;
  const TileIndex block(tiles, chunks, a.heads);
  const std::int64_t b = block.batch, h = block.head, g = h / (a.heads / a.kv_heads);
  const std::int64_t first = block.tile * Tile::own, first_column = block.chunk * Tile::columns;
  const TileRows<T> queries(a.q, b, h, first, a.queries, Tile::own);
  const TileRows<T> grads(d.dout, b, h, first, a.queries, Tile::own);
  const ScoreRule<T> rule(a, b, h);

  Sums<Tile, C> sums = {};
  C lse[Tile::rows], delta[Tile::rows];
  NORMA_UNROLL
  for (int r = 0; r < Tile::rows; ++r) {
    const bool exists = at.row + r < queries.count;
    const std::int64_t row = (b * a.heads + h) * a.queries + first + at.row + r;
    lse[r] = exists ? d.logsumexp[row] : -infinity;
    delta[r] = exists ? d.delta[row] : C(0);
  }
  const std::int64_t last_seen = first + queries.count;
  const std::int64_t end = a.causal && last_seen < a.keys ? last_seen : a.keys;
  for (std::int64_t key = 0; key < end; key += Tile::other) {
    const unsigned present = present_keys(a, b, key);
    if (present == 0) continue;
    const TileRows<T> keys(a.k, b, g, key, a.keys, Tile::other);
    const TileRows<T> values(a.v, b, g, key, a.keys, Tile::other);
    Scores<Tile, C> s, ds;
    __syncthreads();
    fetch_summands<Tile>(keys, present, first_column, a.width, summands);
    multiply(at, queries, keys, a.width, stage_own, stage_other, s);
    __syncthreads();
    multiply(at, grads, values, a.value_width, stage_own, stage_other, ds);
    Dropout<C> dropout(a);
    NORMA_UNROLL
    for (int r = 0; r < Tile::rows; ++r) {
      const std::int64_t i = first + at.row + r;
      NORMA_UNROLL
      for (int c = 0; c < Tile::cols; ++c) {
        const std::int64_t j = key + at.col + c;
        if ((present >> (at.col + c) & 1u) != 0 && lse[r] != -infinity && rule.sees(i, j))
          differentiate(rule, dropout, i, j, lse[r], delta[r], s[r][c], ds[r][c]);
        else
          ds[r][c] = C(0);
      }
    }
    accumulate(at, ds, keys.count, weight_rows, summands, sums);
  }
  NORMA_UNROLL
  for (int r = 0; r < Tile::rows; ++r) {
    if (at.row + r >= queries.count) continue;
    T* const to = d.dq.at(b, h, first + at.row + r);
    for_each_sum(at, sums, r, first_column, a.width, [&](std::int64_t column, C value) {
      to[column] = convert<T>(value * static_cast<C>(a.scale));
    });
  }
}

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    attention_dkv_kernel(Attention<T> a, AttentionGradients<T> d, std::int64_t tiles,
                         std::int64_t chunks) {
  using C = accumulate_t<T>;
  constexpr C infinity = std::numeric_limits<C>::infinity();
  NORMA_SHARED(C, stage_own, Tile::own * Tile::depth_stride);
  NORMA_SHARED(C, stage_other, Tile::other * Tile::depth_stride);
  NORMA_SHARED(C, weight_rows, Tile::own * Tile::weight_stride);
  NORMA_SHARED(C, summands, Tile::other * Tile::columns);
  const Tile at;
  const TileIndex block(tiles, chunks, a.kv_heads);
  const std::int64_t b = block.batch, g = block.head, group = a.heads / a.kv_heads;
  const std::int64_t first = block.tile * Tile::own, first_column = block.chunk * Tile::columns;
  const TileRows<T> keys(a.k, b, g, first, a.keys, Tile::own);
  const TileRows<T> values(a.v, b, g, first, a.keys, Tile::own);
  const bool wants_dk = d.dk.data != nullptr, wants_dv = d.dv.data != nullptr;

  Sums<Tile, C> dk = {}, dv = {};
  bool present[Tile::rows];
  NORMA_UNROLL
  for (int r = 0; r < Tile::rows; ++r)
    present[r] = at.row + r < keys.count &&
                 (a.padding == nullptr || !a.padding[b * a.keys + first + at.row + r]);
  for (std::int64_t h = g * group; h < (g + 1) * group; ++h) {
    const ScoreRule<T> rule(a, b, h);
    // With causality, queries before the first key see none of these.
    for (std::int64_t query = a.causal ? first : 0; query < a.queries; query += Tile::other) {
      const TileRows<T> queries(a.q, b, h, query, a.queries, Tile::other);
      const TileRows<T> grads(d.dout, b, h, query, a.queries, Tile::other);
      Scores<Tile, C> s, ds = {};
      __syncthreads();
      if (wants_dv)
        fetch_summands<Tile>(grads, first_bits(grads.count), first_column, a.value_width, summands);
      multiply(at, keys, queries, a.width, stage_own, stage_other, s);
      if (wants_dk) {
        __syncthreads();
        multiply(at, values, grads, a.value_width, stage_own, stage_other, ds);
      }
      Dropout<C> dropout(a);
      NORMA_UNROLL
      for (int c = 0; c < Tile::cols; ++c) {
        const bool exists = at.col + c < queries.count;
        const std::int64_t i = query + at.col + c, row = (b * a.heads + h) * a.queries + i;
        const C lse = exists ? d.logsumexp[row] : -infinity;
        const C delta = exists && wants_dk ? d.delta[row] : C(0);
        NORMA_UNROLL
        for (int r = 0; r < Tile::rows; ++r) {
          const std::int64_t j = first + at.row + r;
          if (present[r] && lse != -infinity && rule.sees(i, j))
            differentiate(rule, dropout, i, j, lse, delta, s[r][c], ds[r][c]);
          else
            s[r][c] = ds[r][c] = C(0);
        }
      }
      if (wants_dv) accumulate(at, s, grads.count, weight_rows, summands, dv);
      if (wants_dk) {
        __syncthreads();
        fetch_summands<Tile>(queries, first_bits(queries.count), first_column, a.width, summands);
        __syncthreads();
        accumulate(at, ds, queries.count, weight_rows, summands, dk);
      }
    }
  }
  NORMA_UNROLL
  for (int r = 0; r < Tile::rows; ++r) {
    if (at.row + r >= keys.count) continue;
    const std::int64_t j = first + at.row + r;
    if (wants_dk)
      for_each_sum(at, dk, r, first_column, a.width, [&](std::int64_t column, C value) {
        d.dk.at(b, g, j)[column] = convert<T>(value * static_cast<C>(a.scale));
      });
    if (wants_dv)
      for_each_sum(at, dv, r, first_column, a.value_width, [&](std::int64_t column, C value) {
        d.dv.at(b, g, j)[column] = convert<T>(value);
      });
  }
}

/// A block for each `own` of `rows` in each of `heads`, and for each part of `width`.
template <class Tile, class T, class... Parameters>
void launch_tiles(const char* name, void (*kernel)(Parameters...), std::int64_t rows,
                  std::int64_t heads, std::int64_t width, const Attention<T>& a,
                  const AttentionGradients<T>& d, void* stream) {
  const std::int64_t tiles = tiles_of(rows, Tile::own), chunks = tiles_of(width, Tile::columns);
  const std::int64_t blocks = a.batch * heads * tiles * chunks;
  if (blocks > 0)
    device::launch({.name = name,
                    .grid = {static_cast<unsigned>(blocks)},
                    .block = {Tile::threads},
                    .stream = stream},
                   kernel, a, d, tiles, chunks);
}

}  // namespace

template <class T>
void attention_backward(const Attention<T>& a, const AttentionGradients<T>& d, void* stream) {
  using C = accumulate_t<T>;
  const std::int64_t rows = a.batch * a.heads * a.queries;
  const bool wants_dq = d.dq.data != nullptr, wants_dk = d.dk.data != nullptr,
             wants_dv = d.dv.data != nullptr;
  if (rows > 0 && (wants_dq || wants_dk))
    device::launch({.name = "attention_delta",
                    .grid = {blocks_for(rows, delta_rows)},
                    .block = {delta_threads},
                    .stream = stream},
                   attention_delta_kernel<T>, a, d.out, d.dout, d.delta);
  if (wants_dq)
    with_columns<T>(a.width, [&]<int columns>() {
      using Kernel = Tile<C, columns>;
      launch_tiles<Kernel>("attention_dq", attention_dq_kernel<T, Kernel>, a.queries, a.heads,
                           a.width, a, d, stream);
    });
  if (wants_dk || wants_dv) {
    const std::int64_t width = std::max(wants_dk ? a.width : 0, wants_dv ? a.value_width : 0);
    with_columns<T>(width, [&]<int columns>() {
      using Kernel = Tile<C, columns>;
      launch_tiles<Kernel>("attention_dkv", attention_dkv_kernel<T, Kernel>, a.keys, a.kv_heads,
                           width, a, d, stream);
    });
  }
}

#define NORMA_ATTENTION_BACKWARD(T) \
  template void attention_backward<T>(const Attention<T>&, const AttentionGradients<T>&, void*);
NORMA_FOR_FLOATING_TYPES(NORMA_ATTENTION_BACKWARD)

}  // namespace norma::cuda_kernels
