// Element-wise norms. A thread keeps its columns and goes down the rows, so that weights are read
// once and the sums for their gradients stay in registers; each block leaves one row of partial
// sums.
#include "norma/cuda/kernels/squash.h"

#include "norma/cuda/kernels/math.cuh"
#include "norma/cuda/kernels/sums.cuh"

#include <algorithm>

namespace norma::cuda_kernels {

namespace {

constexpr int block_threads = 256;
constexpr int rows_at_once = 4;  // of a thread: their loads overlap

/// How a matrix is cut into blocks: tiles of `lanes` vectors side by side, times parts of the rows.
/// A function of the shape and the vectors alone, as is the order of every sum.
struct Cut {
  int lanes;  ///< a power of two up to a warp
  std::int64_t tiles, parts, rows_per_part;
};
/// `max_blocks` bounds the partial sums; 0: each thread takes rows_at_once rows.
Cut cut_of(const RowNormShape& s, int vec, std::int64_t max_blocks) {
  const std::int64_t vectors = (s.width + vec - 1) / vec;
  int lanes = 1;
  while (lanes < warp_size && lanes < vectors) lanes *= 2;
  const std::int64_t tiles = (vectors + lanes - 1) / lanes;
  const std::int64_t at_once = std::int64_t{block_threads} / lanes * rows_at_once;
  std::int64_t parts = (s.rows + at_once - 1) / at_once;
  if (max_blocks > 0) parts = std::min(parts, std::max<std::int64_t>(1, max_blocks / tiles));
  const std::int64_t per_part = (s.rows + parts - 1) / parts;
  return {lanes, tiles, (s.rows + per_part - 1) / per_part, per_part};
}
constexpr std::int64_t backward_blocks = 1024;

/// Where a thread stands.
struct Spot {
  std::int64_t part, column, row, end;  ///< its first column, its first row, where rows end
  int strip, strips;                    ///< of the rows at a time
  __device__ Spot(const Cut& cut, const RowNormShape& s, int vec) {
    const int lane = static_cast<int>(threadIdx.x) % cut.lanes;
    strips = block_threads / cut.lanes;
    strip = static_cast<int>(threadIdx.x) / cut.lanes;
    part = blockIdx.x / cut.tiles;
    column = (blockIdx.x % cut.tiles * cut.lanes + lane) * vec;
    const std::int64_t begin = part * cut.rows_per_part;
    row = begin + strip;
    end = begin + cut.rows_per_part < s.rows ? begin + cut.rows_per_part : s.rows;
    if (column >= s.width) end = 0;  // a tile's last columns: nothing to do but to wait at barriers
  }
};

/// The values of the thread's columns.
template <class T, int vec, class C>
__device__ __forceinline__ void load_columns(C (&values)[vec], const T* from, C absent,
                                             const RowNormShape& s, std::int64_t column) {
  const std::int64_t segment = s.segment();
  NORMA_UNROLL
  for (int e = 0; e < vec; ++e)
    values[e] =
        from != nullptr && column < s.width ? convert<C>(from[(column + e) / segment]) : absent;
}
template <class C, class T>
__device__ __forceinline__ C scalar_or(const T* from, C absent) {
  return from != nullptr ? convert<C>(*from) : absent;
}

template <Squash curve, class C>
__device__ __forceinline__ C curve_value(C z) {
  if constexpr (curve == Squash::tanh) return DeviceMath::tanh(z);
  if constexpr (curve == Squash::erf) return DeviceMath::erf(z);
  return z;
}
/// From z and the value there.
template <Squash curve, class C>
__device__ __forceinline__ C curve_slope(C z, C value) {
  if constexpr (curve == Squash::tanh) return C(1) - value * value;
  if constexpr (curve == Squash::erf)
    return static_cast<C>(1.1283791670955126) * DeviceMath::exp(-z * z);  // 2 / sqrt(pi)
  return C(1);
}

template <class T, int vec, Squash curve>
__global__ void __launch_bounds__(block_threads) squash_kernel(SquashForward<T> a, Cut cut) {
  using C = statistic_t<T>;
  const std::int64_t width = a.shape.width;
  const Spot spot(cut, a.shape, vec);
  const C alpha = scalar_or(a.alpha, C(1)), shift = scalar_or(a.shift, C(0));
  C gains[vec], offsets[vec];
  load_columns(gains, a.weight, C(1), a.shape, spot.column);
  load_columns(offsets, a.bias, C(0), a.shape, spot.column);
  for (std::int64_t row = spot.row; row < spot.end; row += rows_at_once * spot.strips) {
    device::Vector<T, vec> x[rows_at_once];
    NORMA_UNROLL
    for (int k = 0; k < rows_at_once; ++k)
      if (row + k * spot.strips < spot.end)
        x[k] = device::load<vec>(a.x + (row + k * spot.strips) * width + spot.column);
    NORMA_UNROLL
    for (int k = 0; k < rows_at_once; ++k) {
      if (row + k * spot.strips >= spot.end) continue;
      NORMA_UNROLL
      for (int e = 0; e < vec; ++e)
        x[k][e] = convert<T>(curve_value<curve>(alpha * convert<C>(x[k][e]) + shift) * gains[e] +
                             offsets[e]);
      device::store(a.out + (row + k * spot.strips) * width + spot.column, x[k]);
    }
  }
}

/// Adds the sums of the strips in their order; `out` is the block's row of partial sums.
template <int vec, class C>
__device__ __forceinline__ void write_strips(const C (&sums)[vec], const Spot& spot, int lanes,
                                             std::int64_t width, C* scratch, C* out) {
  const int columns = lanes * vec;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  NORMA_UNROLL
  for (int e = 0; e < vec; ++e) scratch[spot.strip * columns + lane * vec + e] = sums[e];
  __syncthreads();
  const int i = static_cast<int>(threadIdx.x);
  const std::int64_t column = spot.column - lane * vec + i;
  if (i < columns && column < width) {
    C total = 0;
    for (int strip = 0; strip < spot.strips; ++strip) total += scratch[strip * columns + i];
    out[column] = total;
  }
  __syncthreads();
}

/// Partial sums: of the columns [parts, width], of all elements [blocks]. Null where nobody wants
/// them.
template <class C>
struct SquashParts {
  C *weight, *bias, *alpha, *shift;
};

/// With z = alpha x + shift and q = dy weight curve'(z): dx = alpha q; the sums are of dy curve(z),
/// dy, q x and q.
template <class T, int vec, Squash curve>
__global__ void __launch_bounds__(block_threads)
    squash_backward_kernel(SquashBackward<T> a, Cut cut, SquashParts<statistic_t<T>> parts) {
  using C = statistic_t<T>;
  using Sum = GroupSum<block_threads, C>;
  NORMA_SHARED(C, strips, block_threads * vec);
  NORMA_SHARED(C, scratch, Sum::scratch_count);
  const std::int64_t width = a.shape.width;
  const Spot spot(cut, a.shape, vec);
  const C alpha = scalar_or(a.alpha, C(1)), shift = scalar_or(a.shift, C(0));
  C gains[vec];
  load_columns(gains, a.weight, C(1), a.shape, spot.column);
  C weight_sums[vec] = {}, bias_sums[vec] = {};
  C scalars[2] = {0, 0};
  for (std::int64_t row = spot.row; row < spot.end; row += rows_at_once * spot.strips) {
    device::Vector<T, vec> x[rows_at_once], dy[rows_at_once];
    NORMA_UNROLL
    for (int k = 0; k < rows_at_once; ++k) {
      if (row + k * spot.strips >= spot.end) continue;
      const std::int64_t first = (row + k * spot.strips) * width + spot.column;
      x[k] = device::load<vec>(a.x + first);
      dy[k] = device::load<vec>(a.dy + first);
    }
    NORMA_UNROLL
    for (int k = 0; k < rows_at_once; ++k) {
      if (row + k * spot.strips >= spot.end) continue;
      NORMA_UNROLL
      for (int e = 0; e < vec; ++e) {
        const C xe = convert<C>(x[k][e]), dye = convert<C>(dy[k][e]);
        const C z = alpha * xe + shift;
        const C value = curve_value<curve>(z);
        const C q = dye * gains[e] * curve_slope<curve>(z, value);
        weight_sums[e] += dye * value;
        bias_sums[e] += dye;
        scalars[0] += q * xe;
        scalars[1] += q;
        x[k][e] = convert<T>(alpha * q);
      }
      if (a.dx != nullptr)
        device::store(a.dx + (row + k * spot.strips) * width + spot.column, x[k]);
    }
  }
  const std::int64_t first = spot.part * width;
  if (parts.weight != nullptr)
    write_strips(weight_sums, spot, cut.lanes, width, strips, parts.weight + first);
  if (parts.bias != nullptr)
    write_strips(bias_sums, spot, cut.lanes, width, strips, parts.bias + first);
  if (parts.alpha == nullptr && parts.shift == nullptr) return;
  Sum sum(scratch);
  sum(scalars);
  if (threadIdx.x != 0) return;
  if (parts.alpha != nullptr) parts.alpha[blockIdx.x] = scalars[0];
  if (parts.shift != nullptr) parts.shift[blockIdx.x] = scalars[1];
}

template <class Use>
void with_curve(Squash curve, const Use& use) {
  switch (curve) {
    case Squash::identity:
      return use.template operator()<Squash::identity>();
    case Squash::tanh:
      return use.template operator()<Squash::tanh>();
    case Squash::erf:
      return use.template operator()<Squash::erf>();
  }
}

device::LaunchConfig config_of(const char* name, const Cut& cut, void* stream) {
  return {.name = name,
          .grid = {static_cast<unsigned>(cut.tiles * cut.parts)},
          .block = {block_threads},
          .stream = stream};
}

}  // namespace

std::int64_t squash_workspace(const RowNormShape& s) {
  std::int64_t elements = 0;
  if (s.rows == 0 || s.width == 0) return elements;
  for (const int vec : {1, full_vector<float>, full_vector<Half>}) {
    const Cut cut = cut_of(s, vec, backward_blocks);
    elements = std::max(elements, 2 * cut.parts * (s.width + cut.tiles) + s.width);
  }
  return elements;
}

template <class T>
void squash(const SquashForward<T>& a, void* stream) {
  if (a.shape.rows == 0 || a.shape.width == 0) return;
  with_curve(a.curve, [&]<Squash curve>() {
    with_vector<T>(a.shape.width, {a.x, a.out}, [&]<int vec>() {
      const Cut cut = cut_of(a.shape, vec, 0);
      device::launch(config_of("squash", cut, stream), squash_kernel<T, vec, curve>, a, cut);
    });
  });
}

template <class T>
void squash_backward(const SquashBackward<T>& a, void* stream) {
  using C = statistic_t<T>;
  const RowNormShape& s = a.shape;
  if (s.rows == 0 || s.width == 0) {
    fill_zero(a.dweight, s.columns, stream);
    fill_zero(a.dbias, s.columns, stream);
    fill_zero(a.dalpha, 1, stream);
    fill_zero(a.dshift, 1, stream);
    return;
  }
  with_curve(a.curve, [&]<Squash curve>() {
    with_vector<T>(s.width, {a.x, a.dy, a.dx}, [&]<int vec>() {
      const Cut cut = cut_of(s, vec, backward_blocks);
      const std::int64_t blocks = cut.tiles * cut.parts;
      C* free = a.workspace;
      const auto area = [&free](const T* wanted, std::int64_t count) {
        C* const from = wanted != nullptr ? free : nullptr;
        if (wanted != nullptr) free += count;
        return from;
      };
      const SquashParts<C> parts{area(a.dweight, cut.parts * s.width),
                                 area(a.dbias, cut.parts * s.width), area(a.dalpha, blocks),
                                 area(a.dshift, blocks)};
      device::launch(config_of("squash_backward", cut, stream),
                     squash_backward_kernel<T, vec, curve>, a, cut, parts);
      if (a.dweight != nullptr)
        finish_sums<T>(parts.weight, cut.parts, s, 1.0, free, a.dweight, stream);
      if (a.dbias != nullptr) finish_sums<T>(parts.bias, cut.parts, s, 1.0, free, a.dbias, stream);
      if (a.dalpha != nullptr) sum_segments<T>(parts.alpha, 1, blocks, 1.0, a.dalpha, stream);
      if (a.dshift != nullptr) sum_segments<T>(parts.shift, 1, blocks, 1.0, a.dshift, stream);
    });
  });
}

#define NORMA_SQUASH(T)                                    \
  template void squash<T>(const SquashForward<T>&, void*); \
  template void squash_backward<T>(const SquashBackward<T>&, void*);
NORMA_SQUASH(float)
NORMA_SQUASH(double)
NORMA_SQUASH(Half)
NORMA_SQUASH(BFloat16)

}  // namespace norma::cuda_kernels
