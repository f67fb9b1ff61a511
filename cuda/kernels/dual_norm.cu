// Two gains on one normalized row: both norms of a parallel block for the statistics of one. Built
// as the row norms are: rows in registers, a persistent backward that leaves partial sums.
#include "norma/cuda/kernels/dual_norm.h"

#include "norma/cuda/kernels/row_norm_backward.cuh"

#include <algorithm>

namespace norma::cuda_kernels {

namespace {

/// What is added to a weight; an absent one is read as 0 and counts as 1.
template <class T>
struct Offsets {
  using C = statistic_t<T>;
  C values[2];
  __device__ Offsets(const T* const (&weight)[2], const RowNormParams& p) {
    NORMA_UNROLL
    for (int i = 0; i < 2; ++i)
      values[i] = weight[i] != nullptr ? static_cast<C>(p.weight_offset) : C(1);
  }
};

template <class T, class G>
__global__ void __launch_bounds__(G::threads) dual_norm_kernel(DualNormForward<T> a) {
  using C = statistic_t<T>;
  using Sum = GroupSum<G::group, C>;
  NORMA_SHARED(C, scratch, Sum::scratch_count);
  Sum sum(scratch);
  const RowNormParams& p = a.params;
  const std::int64_t width = a.shape.width;
  const Place<G> place;
  const std::int64_t first_row =
      static_cast<std::int64_t>(blockIdx.x) * G::block_rows + place.group;
  RowPart<T, G> x[G::rows];
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    x[k].load(a.x + row * width, width, place, row < a.shape.rows);
  }
  const Offsets<T> offsets(a.weight, p);
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    const RowStatistics<C> s = p.centred ? row_statistics<CentredRow, C>(x[k], width, p, place, sum)
                                         : row_statistics<PlainRow, C>(x[k], width, p, place, sum);
    if (row >= a.shape.rows) continue;
    if (place.lane == 0) {
      if (a.mean != nullptr) a.mean[row] = s.mean + s.rest;
      if (a.rstd != nullptr) a.rstd[row] = s.rstd;
    }
    NORMA_UNROLL
    for (int i = 0; i < 2; ++i) {
      RowPart<T, G> weight, bias;
      weight.load(a.weight[i], width, place, a.weight[i] != nullptr);
      bias.load(a.bias[i], width, place, a.bias[i] != nullptr);
      write_row<C>(
          a.out[i] + row * width, width, place,
          [&](Element, C value, C w, C b) {
            return ((value - s.mean) - s.rest) * s.rstd * (offsets.values[i] + w) + b;
          },
          x[k], weight, bias);
    }
  }
}

/// Partial sums [blocks, width] for dweight and dbias; null where nobody wants them.
template <class C>
struct DualNormParts {
  C *weight[2], *bias[2];
};

/// Rows that do not stay in registers leave no sums.
template <class T, class G>
__global__ void __launch_bounds__(G::threads)
    dual_norm_backward_kernel(DualNormBackward<T> a, DualNormParts<statistic_t<T>> parts) {
  using C = statistic_t<T>;
  using Sum = GroupSum<G::group, C>;
  NORMA_SHARED(C, scratch, Sum::scratch_count);
  Sum sum(scratch);
  const RowNormParams& p = a.params;
  const std::int64_t width = a.shape.width;
  const Place<G> place;
  RowPart<T, G> weight[2];
  const Offsets<T> offsets(a.weight, p);
  NORMA_UNROLL
  for (int i = 0; i < 2; ++i) weight[i].load(a.weight[i], width, place, a.weight[i] != nullptr);
  constexpr int sum_count = G::resident ? G::elements : 1;
  C weight_sums[2][sum_count] = {}, bias_sums[2][sum_count] = {};

  // The same number of rounds for every group of the block: there are barriers inside.
  for (std::int64_t base = static_cast<std::int64_t>(blockIdx.x) * G::block_rows;
       base < a.shape.rows; base += static_cast<std::int64_t>(gridDim.x) * G::block_rows) {
    RowPart<T, G> x[G::rows], dy1[G::rows], dy2[G::rows];
    C mean[G::rows], rstd[G::rows];
    NORMA_UNROLL
    for (int k = 0; k < G::rows; ++k) {
      const std::int64_t row = base + k * G::groups + place.group;
      const bool active = row < a.shape.rows;
      x[k].load(a.x + row * width, width, place, active);
      dy1[k].load(a.dy[0] + row * width, width, place, active);
      dy2[k].load(a.dy[1] + row * width, width, place, active);
      mean[k] = active && a.mean != nullptr ? a.mean[row] : C(0);
      rstd[k] = active ? a.rstd[row] : C(0);
    }
    NORMA_UNROLL
    for (int k = 0; k < G::rows; ++k) {
      const std::int64_t row = base + k * G::groups + place.group;
      const C m = mean[k], r = rstd[k];
      const auto gradient = [&](C d1, C d2, C w1, C w2) {
        return d1 * (offsets.values[0] + w1) + d2 * (offsets.values[1] + w2);
      };
      C sum_g = 0, sum_gh = 0;
      visit_rows<C>(
          width, place,
          [&](Element at, C value, C d1, C d2, C w1, C w2) {
            const C h = (value - m) * r;
            const C g = gradient(d1, d2, w1, w2);
            sum_g += g;
            sum_gh += g * h;
            if constexpr (G::resident) {
              weight_sums[0][at.slot] += d1 * h;
              weight_sums[1][at.slot] += d2 * h;
              bias_sums[0][at.slot] += d1;
              bias_sums[1][at.slot] += d2;
            }
          },
          x[k], dy1[k], dy2[k], weight[0], weight[1]);
      if (a.dx == nullptr) continue;
      const RowGradient<C> of_row = row_gradient<GeneralRow>(sum_g, sum_gh, r, width, p, sum);
      if (row >= a.shape.rows) continue;
      write_row<C>(
          a.dx + row * width, width, place,
          [&](Element, C value, C d1, C d2, C w1, C w2) {
            const C h = (value - m) * r;
            return r * ((gradient(d1, d2, w1, w2) - of_row.mean_g) - h * of_row.share);
          },
          x[k], dy1[k], dy2[k], weight[0], weight[1]);
    }
  }

  if constexpr (G::resident) {
    NORMA_SHARED(C, totals, (G::groups == 1 ? 1 : G::threads / warp_size * G::capacity));
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * width;
    NORMA_UNROLL
    for (int i = 0; i < 2; ++i) {
      if (parts.weight[i] != nullptr)
        write_partial_sums(weight_sums[i], width, place, totals, parts.weight[i] + first);
      if (parts.bias[i] != nullptr)
        write_partial_sums(bias_sums[i], width, place, totals, parts.bias[i] + first);
    }
  }
}

/// Two inputs, four sums: half of the elements that a row norm keeps, in threads that may take all
/// registers where an access has 8 elements.
constexpr int backward_vectors = 2;
template <class T>
constexpr int backward_threads = sizeof(T) == 2 ? 256 : 512;

}  // namespace

std::int64_t dual_norm_workspace(const RowNormShape& s) {
  return std::max(4 * persistent_blocks(s) * s.width, workspace_elements(s));
}

template <class T>
void dual_norm(const DualNormForward<T>& a, void* stream) {
  const RowNormShape& s = a.shape;
  if (s.rows == 0 || s.width == 0) return;
  with_rows<T, 4>(s.width,
                  {a.x, a.weight[0], a.weight[1], a.bias[0], a.bias[1], a.out[0], a.out[1]},
                  [&]<class G>() {
                    device::launch({.name = "dual_norm",
                                    .grid = {blocks_for(s.rows, G::block_rows)},
                                    .block = {G::threads},
                                    .stream = stream},
                                   dual_norm_kernel<T, G>, a);
                  });
}

template <class T>
void dual_norm_backward(const DualNormBackward<T>& a, void* stream) {
  using C = statistic_t<T>;
  const RowNormShape& s = a.shape;
  bool wants_sums = false;
  for (int i = 0; i < 2; ++i) {
    wants_sums = wants_sums || a.dweight[i] != nullptr || a.dbias[i] != nullptr;
    if (s.rows > 0 && s.width > 0) continue;
    fill_zero(a.dweight[i], s.width, stream);
    fill_zero(a.dbias[i], s.width, stream);
  }
  if (s.rows == 0 || s.width == 0) return;
  DualNormParts<C> parts = {};
  std::int64_t part_count = 0;
  with_rows<T, backward_vectors, backward_threads<T>>(
      s.width, {a.x, a.weight[0], a.weight[1], a.dy[0], a.dy[1], a.dx}, [&]<class G>() {
        if (a.dx == nullptr && !(G::resident && wants_sums)) return;
        std::int64_t blocks = blocks_for(s.rows, G::block_rows);
        if (G::resident && wants_sums) {
          blocks = std::min(blocks, persistent_blocks(s));
          part_count = blocks;
          for (int i = 0; i < 2; ++i) {
            const std::int64_t area = blocks * s.width;
            if (a.dweight[i] != nullptr) parts.weight[i] = a.workspace + 2 * i * area;
            if (a.dbias[i] != nullptr) parts.bias[i] = a.workspace + (2 * i + 1) * area;
          }
        }
        device::launch({.name = "dual_norm_backward",
                        .grid = {static_cast<unsigned>(blocks)},
                        .block = {G::threads},
                        .stream = stream},
                       dual_norm_backward_kernel<T, G>, a, parts);
      });
  for (int i = 0; i < 2; ++i) {
    if (part_count == 0) {  // wide rows: these sums are those of a row norm of its own
      if (a.dweight[i] == nullptr && a.dbias[i] == nullptr) continue;
      RowNormParams params = a.params;
      params.scale = 1.0;
      row_norm_backward<T>({.shape = s,
                            .params = params,
                            .x = a.x,
                            .weight = a.weight[i],
                            .mean = a.mean,
                            .rstd = a.rstd,
                            .dy = a.dy[i],
                            .dsum = nullptr,
                            .dx = nullptr,
                            .dresidual = nullptr,
                            .dweight = a.dweight[i],
                            .dbias = a.dbias[i],
                            .workspace = a.workspace},
                           stream);
      continue;
    }
    if (a.dweight[i] != nullptr)
      finish_sums<T>(parts.weight[i], part_count, s, 1.0, nullptr, a.dweight[i], stream);
    if (a.dbias[i] != nullptr)
      finish_sums<T>(parts.bias[i], part_count, s, 1.0, nullptr, a.dbias[i], stream);
  }
}

#define NORMA_DUAL_NORM(T)                                      \
  template void dual_norm<T>(const DualNormForward<T>&, void*); \
  template void dual_norm_backward<T>(const DualNormBackward<T>&, void*);
NORMA_DUAL_NORM(float)
NORMA_DUAL_NORM(double)
NORMA_DUAL_NORM(Half)
NORMA_DUAL_NORM(BFloat16)

}  // namespace norma::cuda_kernels
