// Forward of attention: a block has 64 queries of a head and goes over the keys once, with the
// largest score and the sum of exponentials so far of each query (Milakov and Gimelshein, 2018).
#include "norma/cuda/kernels/attention_tile.cuh"
#include "norma/cuda/kernels/element.cuh"
#include "norma/cuda/kernels/reduce.cuh"

#include <algorithm>

namespace norma::cuda_kernels {

namespace {

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::threads, Tile::resident)
    attention_kernel(Attention<T> a, std::int64_t tiles, std::int64_t chunks, Heads<T> out,
                     accumulate_t<T>* logsumexp) {
  using C = accumulate_t<T>;
  constexpr C infinity = std::numeric_limits<C>::infinity();
  NORMA_SHARED(C, stage_own, Tile::own * Tile::depth_stride);
  NORMA_SHARED(C, stage_other, Tile::other * Tile::depth_stride);
  NORMA_SHARED(C, weight_rows, Tile::own * Tile::weight_stride);
  NORMA_SHARED(C, summands, Tile::other * Tile::columns);
  GroupMax<Tile::lanes, C> max(nullptr);
  GroupSum<Tile::lanes, C> sum(nullptr);
  const Tile at;
  const TileIndex block(tiles, chunks, a.heads);
  const std::int64_t b = block.batch, h = block.head, g = h / (a.heads / a.kv_heads);
  const std::int64_t first = block.tile * Tile::own, first_column = block.chunk * Tile::columns;
  const TileRows<T> queries(a.q, b, h, first, a.queries, Tile::own);
  const ScoreRule<T> rule(a, b, h);

  Sums<Tile, C> sums = {};
  C largest[Tile::rows], total[Tile::rows];  // of `total` each thread has the part of its keys
  NORMA_UNROLL
  for (int r = 0; r < Tile::rows; ++r) {
    largest[r] = -infinity;
    total[r] = C(0);
  }
  const std::int64_t last_seen = first + queries.count;
  const std::int64_t end = a.causal && last_seen < a.keys ? last_seen : a.keys;
  for (std::int64_t key = 0; key < end; key += Tile::other) {
    const unsigned present = present_keys(a, b, key);
    if (present == 0) continue;
    const TileRows<T> keys(a.k, b, g, key, a.keys, Tile::other);
    const TileRows<T> values(a.v, b, g, key, a.keys, Tile::other);
    Scores<Tile, C> s;
    __syncthreads();
    fetch_summands<Tile>(values, present, first_column, a.value_width, summands);
    multiply(at, queries, keys, a.width, stage_own, stage_other, s);
    Dropout<C> dropout(a);
    NORMA_UNROLL
    for (int r = 0; r < Tile::rows; ++r) {
      const std::int64_t i = first + at.row + r;
      C top = -infinity, slope;
      NORMA_UNROLL
      for (int c = 0; c < Tile::cols; ++c) {
        const std::int64_t j = key + at.col + c;
        const bool seen =
            (present >> (at.col + c) & 1u) != 0 && at.row + r < queries.count && rule.sees(i, j);
        s[r][c] = seen ? rule.score(s[r][c], i, j, slope) : -infinity;
        top = Larger::combine(s[r][c], top);
      }
      top = Larger::combine(max(top), largest[r]);
      // Exponentials are of distances from 0 while nothing is seen: all zeros, but NaN stays.
      const C centre = top == -infinity ? C(0) : top;
      const C shrink = DeviceMath::exp(largest[r] - centre);
      largest[r] = top;
      total[r] *= shrink;
      NORMA_UNROLL
      for (int k = 0; k < Tile::sums; ++k) sums[r][k] *= shrink;
      NORMA_UNROLL
      for (int c = 0; c < Tile::cols; ++c) {
        const C p = DeviceMath::exp(s[r][c] - centre);
        total[r] += p;
        s[r][c] = p * dropout(rule.word(i, key + at.col + c));
      }
    }
    accumulate(at, s, keys.count, weight_rows, summands, sums);
  }
  NORMA_UNROLL
  for (int r = 0; r < Tile::rows; ++r) {
    const C divisor = sum(total[r]);
    if (at.row + r >= queries.count) continue;
    const std::int64_t i = first + at.row + r;
    const C factor = C(1) / divisor;
    T* const to = out.at(b, h, i);
    for_each_sum(at, sums, r, first_column, a.value_width, [&](std::int64_t column, C value) {
      to[column] = convert<T>(divisor == C(0) ? C(0) : value * factor);
    });
    if (block.chunk == 0 && at.lane == 0)
      logsumexp[(b * a.heads + h) * a.queries + i] =
          divisor == C(0) ? -infinity : largest[r] + DeviceMath::log(divisor);
  }
}

}  // namespace

template <class T>
void attention(const Attention<T>& a, const Heads<T>& out, accumulate_t<T>* logsumexp,
               void* stream) {
  with_columns<T>(a.value_width, [&]<int columns>() {
    using Kernel = Tile<accumulate_t<T>, columns>;
    const std::int64_t tiles = tiles_of(a.queries, Kernel::own);
    const std::int64_t chunks = std::max<std::int64_t>(tiles_of(a.value_width, columns), 1);
    const std::int64_t blocks = a.batch * a.heads * tiles * chunks;
    if (blocks > 0)
      device::launch({.name = "attention",
                      .grid = {static_cast<unsigned>(blocks)},
                      .block = {Kernel::threads},
                      .stream = stream},
                     attention_kernel<T, Kernel>, a, tiles, chunks, out, logsumexp);
  });
}

#define NORMA_ATTENTION(T) \
  template void attention<T>(const Attention<T>&, const Heads<T>&, accumulate_t<T>*, void*);
NORMA_FOR_FLOATING_TYPES(NORMA_ATTENTION)

}  // namespace norma::cuda_kernels
