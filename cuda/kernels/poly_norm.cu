// PolyNorm: three statistics of a row, and a backward whose parameters are four numbers.
#include "norma/cuda/kernels/poly_norm.h"

#include "norma/cuda/kernels/math.cuh"
#include "norma/cuda/kernels/sums.cuh"

#include <algorithm>

namespace norma::cuda_kernels {

namespace {

/// Blocks of the backward, each of which leaves one number for each parameter.
std::int64_t backward_blocks(std::int64_t rows) { return std::min<std::int64_t>(rows, 1024); }

template <class T, class G>
__global__ void __launch_bounds__(G::threads) poly_norm_kernel(PolyNormForward<T> a) {
  using C = statistic_t<T>;
  using Sum = GroupSum<G::group, C, 3>;
  NORMA_SHARED(C, scratch, Sum::scratch_count);
  Sum sum(scratch);
  const Place<G> place;
  const std::int64_t first_row =
      static_cast<std::int64_t>(blockIdx.x) * G::block_rows + place.group;
  RowPart<T, G> x[G::rows];
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    x[k].load(a.x + row * a.width, a.width, place, row < a.rows);
  }
  const C bias = a.bias != nullptr ? convert<C>(*a.bias) : C(0);
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    C sums[3] = {0, 0, 0};
    visit_rows<C>(
        a.width, place,
        [&](Element, C value) {
          const C square = value * value;
          const C fourth = square * square;
          sums[0] += fourth * square;
          sums[1] += fourth;
          sums[2] += square;
        },
        x[k]);
    sum(sums);
    if (row >= a.rows) continue;
    C gains[3];
    NORMA_UNROLL
    for (int i = 0; i < 3; ++i) {
      const C mean_square = sums[i] / static_cast<C>(a.width);
      const C r = C(1) / DeviceMath::sqrt(mean_square + static_cast<C>(a.eps));
      if (a.rstd != nullptr && place.lane == 0) a.rstd[3 * row + i] = r;
      gains[i] = convert<C>(a.weight[i]) * r;
    }
    write_row<C>(
        a.out + row * a.width, a.width, place,
        [&](Element, C value) {
          return ((gains[0] * value + gains[1]) * value + gains[2]) * value + bias;
        },
        x[k]);
  }
}

/// With S_p = sum of dy x^p: dx = sum over p of w_p p x^(p-1) (r_p dy - r_p^3 S_p x^p / n),
/// dw_p = sum over rows of r_p S_p, dbias = sum of dy. Partial sums [4, blocks], or null.
template <class T, class G>
__global__ void __launch_bounds__(G::threads)
    poly_norm_backward_kernel(PolyNormBackward<T> a, statistic_t<T>* parts) {
  using C = statistic_t<T>;
  using Sum = GroupSum<G::group, C, 4>;
  NORMA_SHARED(C, scratch, Sum::scratch_count);
  NORMA_SHARED(C, of_groups, 4 * G::groups);
  Sum sum(scratch);
  const Place<G> place;
  const C n = static_cast<C>(a.width);
  C weight[3], totals[4] = {0, 0, 0, 0};
  NORMA_UNROLL
  for (int i = 0; i < 3; ++i) weight[i] = convert<C>(a.weight[i]);

  // The same number of rounds for every group of the block: there are barriers inside.
  for (std::int64_t base = static_cast<std::int64_t>(blockIdx.x) * G::block_rows; base < a.rows;
       base += static_cast<std::int64_t>(gridDim.x) * G::block_rows) {
    RowPart<T, G> x[G::rows], dy[G::rows];
    NORMA_UNROLL
    for (int k = 0; k < G::rows; ++k) {
      const std::int64_t row = base + k * G::groups + place.group;
      x[k].load(a.x + row * a.width, a.width, place, row < a.rows);
      dy[k].load(a.dy + row * a.width, a.width, place, row < a.rows);
    }
    NORMA_UNROLL
    for (int k = 0; k < G::rows; ++k) {
      const std::int64_t row = base + k * G::groups + place.group;
      C sums[4] = {0, 0, 0, 0};  // of dy x^3, dy x^2, dy x, dy
      visit_rows<C>(
          a.width, place,
          [&](Element, C value, C d) {
            const C first = d * value, second = first * value;
            sums[0] += second * value;
            sums[1] += second;
            sums[2] += first;
            sums[3] += d;
          },
          x[k], dy[k]);
      sum(sums);
      if (row >= a.rows) continue;
      C gains[3], shares[3];
      NORMA_UNROLL
      for (int i = 0; i < 3; ++i) {
        const C r = a.rstd[3 * row + i];
        gains[i] = static_cast<C>(3 - i) * weight[i] * r;
        shares[i] = r * r * sums[i] / n;
        totals[i] += r * sums[i];
      }
      totals[3] += sums[3];
      if (a.dx == nullptr) continue;
      write_row<C>(
          a.dx + row * a.width, a.width, place,
          [&](Element, C value, C d) {
            const C square = value * value;
            return gains[0] * square * (d - shares[0] * square * value) +
                   gains[1] * value * (d - shares[1] * square) + gains[2] * (d - shares[2] * value);
          },
          x[k], dy[k]);
    }
  }

  if (parts == nullptr) return;
  if (place.lane == 0) {
    NORMA_UNROLL
    for (int i = 0; i < 4; ++i) of_groups[4 * place.group + i] = totals[i];
  }
  __syncthreads();
  const int i = static_cast<int>(threadIdx.x);
  if (i >= 4) return;
  C total = 0;
  for (int group = 0; group < G::groups; ++group) total += of_groups[4 * group + i];
  parts[static_cast<std::int64_t>(i) * gridDim.x + blockIdx.x] = total;
}

}  // namespace

std::int64_t poly_norm_workspace(std::int64_t rows) { return 4 * backward_blocks(rows); }

template <class T>
void poly_norm(const PolyNormForward<T>& a, void* stream) {
  if (a.rows == 0 || a.width == 0) return;
  with_rows<T, 4>(a.width, {a.x, a.out}, [&]<class G>() {
    device::launch({.name = "poly_norm",
                    .grid = {blocks_for(a.rows, G::block_rows)},
                    .block = {G::threads},
                    .stream = stream},
                   poly_norm_kernel<T, G>, a);
  });
}

template <class T>
void poly_norm_backward(const PolyNormBackward<T>& a, void* stream) {
  if (a.rows == 0 || a.width == 0) {
    fill_zero(a.dweight, 3, stream);
    fill_zero(a.dbias, 1, stream);
    return;
  }
  const bool wants_sums = a.dweight != nullptr || a.dbias != nullptr;
  if (a.dx == nullptr && !wants_sums) return;
  with_rows<T, 4>(a.width, {a.x, a.dy, a.dx}, [&]<class G>() {
    std::int64_t blocks = blocks_for(a.rows, G::block_rows);
    if (wants_sums) blocks = std::min(blocks, backward_blocks(a.rows));
    device::launch({.name = "poly_norm_backward",
                    .grid = {static_cast<unsigned>(blocks)},
                    .block = {G::threads},
                    .stream = stream},
                   poly_norm_backward_kernel<T, G>, a, wants_sums ? a.workspace : nullptr);
    if (a.dweight != nullptr) sum_segments<T>(a.workspace, 3, blocks, 1.0, a.dweight, stream);
    if (a.dbias != nullptr)
      sum_segments<T>(a.workspace + 3 * blocks, 1, blocks, 1.0, a.dbias, stream);
  });
}

#define NORMA_POLY_NORM(T)                                      \
  template void poly_norm<T>(const PolyNormForward<T>&, void*); \
  template void poly_norm_backward<T>(const PolyNormBackward<T>&, void*);
NORMA_POLY_NORM(float)
NORMA_POLY_NORM(double)
NORMA_POLY_NORM(Half)
NORMA_POLY_NORM(BFloat16)

}  // namespace norma::cuda_kernels
