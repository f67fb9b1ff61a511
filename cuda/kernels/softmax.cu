// Softmax of rows: the maximum, the sum of exponentials, the output. Exponentials are taken twice
// rather than kept: these kernels wait for memory.
#include "norma/cuda/kernels/softmax.h"

#include "norma/cuda/kernels/math.cuh"
#include "norma/cuda/kernels/reduce.cuh"
#include "norma/cuda/kernels/rows_launch.cuh"

#include <algorithm>
#include <limits>

namespace norma::cuda_kernels {

namespace {

using device::convert;

template <class T, class G>
__global__ void __launch_bounds__(G::threads)
    softmax_kernel(const T* from, std::int64_t rows, std::int64_t width, bool log, T* out) {
  using C = statistic_t<T>;
  using Sum = GroupSum<G::group, C>;
  using Max = GroupMax<G::group, C>;
  NORMA_SHARED(C, sum_scratch, Sum::scratch_count);
  NORMA_SHARED(C, max_scratch, Max::scratch_count);
  Sum sum(sum_scratch);
  Max max(max_scratch);
  const Place<G> place;
  const std::int64_t first_row =
      static_cast<std::int64_t>(blockIdx.x) * G::block_rows + place.group;
  RowPart<T, G> x[G::rows];
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    x[k].load(from + row * width, width, place, row < rows);
  }
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    C largest = -std::numeric_limits<C>::infinity();
    visit_rows<C>(
        width, place, [&](Element, C value) { largest = Larger::combine(largest, value); }, x[k]);
    largest = max(largest);
    C total = 0;
    visit_rows<C>(
        width, place, [&](Element, C value) { total += DeviceMath::exp(value - largest); }, x[k]);
    total = sum(total);
    if (row >= rows) continue;
    const C log_total = log ? DeviceMath::log(total) : C(0);
    const C scale = C(1) / total;
    write_row<C>(
        out + row * width, width, place,
        [&](Element, C value) {
          const C distance = value - largest;
          return log ? distance - log_total : DeviceMath::exp(distance) * scale;
        },
        x[k]);
  }
}

/// dx = y (dy - sum of y dy); of the logarithm dy - exp(y) sum of dy.
template <class T, class G>
__global__ void __launch_bounds__(G::threads)
    softmax_backward_kernel(const T* from_y, const T* from_dy, std::int64_t rows,
                            std::int64_t width, bool log, T* dx) {
  using C = statistic_t<T>;
  using Sum = GroupSum<G::group, C>;
  NORMA_SHARED(C, scratch, Sum::scratch_count);
  Sum sum(scratch);
  const Place<G> place;
  const std::int64_t first_row =
      static_cast<std::int64_t>(blockIdx.x) * G::block_rows + place.group;
  RowPart<T, G> y[G::rows], dy[G::rows];
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    y[k].load(from_y + row * width, width, place, row < rows);
    dy[k].load(from_dy + row * width, width, place, row < rows);
  }
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    C total = 0;
    visit_rows<C>(
        width, place, [&](Element, C value, C d) { total += log ? d : d * value; }, y[k], dy[k]);
    total = sum(total);
    if (row >= rows) continue;
    write_row<C>(
        dx + row * width, width, place,
        [&](Element, C value, C d) {
          return log ? d - DeviceMath::exp(value) * total : value * (d - total);
        },
        y[k], dy[k]);
  }
}

/// What a loss is made of: `certain` of the target's negative log likelihood, `share` of each
/// class's.
template <class C>
struct Smoothing {
  C certain, share;
};
template <class T>
Smoothing<statistic_t<T>> smoothing_of(const CrossEntropy<T>& a) {
  using C = statistic_t<T>;
  const double classes = static_cast<double>(std::max<std::int64_t>(a.classes, 1));
  return {static_cast<C>(1.0 - a.label_smoothing), static_cast<C>(a.label_smoothing / classes)};
}

template <class T, class G>
__global__ void __launch_bounds__(G::threads)
    cross_entropy_kernel(CrossEntropy<T> a, Smoothing<statistic_t<T>> smoothing,
                         statistic_t<T>* loss, statistic_t<T>* logsumexp) {
  using C = statistic_t<T>;
  using Sum = GroupSum<G::group, C, 3>;
  using Max = GroupMax<G::group, C>;
  NORMA_SHARED(C, sum_scratch, Sum::scratch_count);
  NORMA_SHARED(C, max_scratch, Max::scratch_count);
  Sum sum(sum_scratch);
  Max max(max_scratch);
  const Place<G> place;
  const std::int64_t first_row =
      static_cast<std::int64_t>(blockIdx.x) * G::block_rows + place.group;
  RowPart<T, G> x[G::rows], weight;
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    x[k].load(a.logits + row * a.classes, a.classes, place, row < a.rows);
  }
  const bool weighted = a.weight != nullptr;
  weight.load(a.weight, a.classes, place, weighted && smoothing.share > C(0));
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    C largest = -std::numeric_limits<C>::infinity();
    visit_rows<C>(
        a.classes, place, [&](Element, C value) { largest = Larger::combine(largest, value); },
        x[k]);
    largest = max(largest);
    C sums[3] = {0, 0, 0};  // exponentials; for smoothing: weighted distances, weights
    visit_rows<C>(
        a.classes, place, [&](Element, C value) { sums[0] += DeviceMath::exp(value - largest); },
        x[k]);
    if (smoothing.share > C(0))
      visit_rows<C>(
          a.classes, place,
          [&](Element, C value, C w) {
            const C factor = weighted ? w : C(1);
            sums[1] += factor * (value - largest);
            sums[2] += factor;
          },
          x[k], weight);
    sum(sums);
    if (row >= a.rows || place.lane != 0) continue;
    const std::int64_t target = a.target[row];
    if (target == a.ignore_index) {
      loss[row] = logsumexp[row] = C(0);
      continue;
    }
    // Distances to the log-sum-exp are taken from the maximum: the difference of close large
    // numbers is exact.
    const C log_sum = DeviceMath::log(sums[0]);
    const C nll = log_sum - (convert<C>(a.logits[row * a.classes + target]) - largest);
    C value = smoothing.certain * nll * (weighted ? convert<C>(a.weight[target]) : C(1));
    if (smoothing.share > C(0)) value += smoothing.share * (sums[2] * log_sum - sums[1]);
    loss[row] = value;
    logsumexp[row] = largest + log_sum;
  }
}

template <class T, class G>
__global__ void __launch_bounds__(G::threads)
    cross_entropy_backward_kernel(CrossEntropy<T> a, Smoothing<statistic_t<T>> smoothing,
                                  const statistic_t<T>* logsumexp, const statistic_t<T>* dloss,
                                  T* dlogits) {
  using C = statistic_t<T>;
  using Sum = GroupSum<G::group, C>;
  NORMA_SHARED(C, scratch, Sum::scratch_count);
  Sum sum(scratch);
  const Place<G> place;
  const std::int64_t first_row =
      static_cast<std::int64_t>(blockIdx.x) * G::block_rows + place.group;
  RowPart<T, G> x[G::rows], weight;
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    x[k].load(a.logits + row * a.classes, a.classes, place, row < a.rows);
  }
  const bool weighted = a.weight != nullptr;
  weight.load(a.weight, a.classes, place, weighted && smoothing.share > C(0));
  C weights = static_cast<C>(a.classes);
  if (weighted && smoothing.share > C(0)) {
    weights = 0;
    visit_rows<C>(
        a.classes, place, [&](Element, C w) { weights += w; }, weight);
    weights = sum(weights);
  }
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    if (row >= a.rows) continue;
    const std::int64_t target = a.target[row];
    T* const out = dlogits + row * a.classes;
    if (target == a.ignore_index) {
      write_row<C>(
          out, a.classes, place, [](Element, C) { return C(0); }, x[k]);
      continue;
    }
    const C lse = logsumexp[row], d = dloss[row];
    const C direct = d * smoothing.certain * (weighted ? convert<C>(a.weight[target]) : C(1));
    const C smooth = d * smoothing.share;
    const C scale = direct + smooth * weights;
    write_row<C>(
        out, a.classes, place,
        [&](Element at, C value, C w) {
          const C hit = at.column == target ? direct : C(0);
          return scale * DeviceMath::exp(value - lse) - hit - smooth * (weighted ? w : C(1));
        },
        x[k], weight);
  }
}

template <class T, class G>
__global__ void __launch_bounds__(G::threads)
    row_moments_kernel(const T* from, std::int64_t rows, std::int64_t width, statistic_t<T>* mean,
                       statistic_t<T>* variance) {
  using C = statistic_t<T>;
  using Sum = GroupSum<G::group, C>;
  NORMA_SHARED(C, scratch, Sum::scratch_count);
  Sum sum(scratch);
  const Place<G> place;
  const C n = static_cast<C>(width);
  const std::int64_t first_row =
      static_cast<std::int64_t>(blockIdx.x) * G::block_rows + place.group;
  RowPart<T, G> x[G::rows];
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    x[k].load(from + row * width, width, place, row < rows);
  }
  NORMA_UNROLL
  for (int k = 0; k < G::rows; ++k) {
    const std::int64_t row = first_row + k * G::groups;
    C total = 0, squares = 0;
    visit_rows<C>(
        width, place, [&](Element, C value) { total += value; }, x[k]);
    const C centre = sum(total) / n;
    visit_rows<C>(
        width, place, [&](Element, C value) { squares += (value - centre) * (value - centre); },
        x[k]);
    squares = sum(squares);
    if (row >= rows || place.lane != 0) continue;
    mean[row] = centre;
    variance[row] = squares / n;
  }
}

constexpr int tile_columns = 32;
constexpr int tile_rows = 8;

/// 32 of the inner columns, 8 of the reduced rows at a time.
template <class T>
__global__ void __launch_bounds__(tile_columns* tile_rows)
    column_moments_kernel(const T* x, std::int64_t reduced, std::int64_t inner,
                          statistic_t<T>* mean, statistic_t<T>* variance) {
  using C = statistic_t<T>;
  NORMA_SHARED(C, scratch, 2 * tile_columns * tile_rows);
  const std::int64_t tiles = (inner + tile_columns - 1) / tile_columns;
  const std::int64_t outer = blockIdx.x / tiles;
  const std::int64_t column = blockIdx.x % tiles * tile_columns + threadIdx.x;
  const T* const from = x + outer * reduced * inner + column;
  const C n = static_cast<C>(reduced);
  // The sum of a column over all strips, in their order.
  const auto total = [&](C* area, const auto& value) {
    C sum = 0;
    if (column < inner)
      for (std::int64_t r = threadIdx.y; r < reduced; r += tile_rows)
        sum += value(convert<C>(from[r * inner]));
    area[threadIdx.y * tile_columns + threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (int y = 0; y < tile_rows; ++y)
      sum += area[y * tile_columns + static_cast<int>(threadIdx.x)];
    return sum;
  };
  const C centre = total(scratch, [](C value) { return value; }) / n;
  const C squares = total(scratch + tile_columns * tile_rows,
                          [centre](C value) { return (value - centre) * (value - centre); });
  if (threadIdx.y != 0 || column >= inner) return;
  mean[outer * inner + column] = centre;
  variance[outer * inner + column] = squares / n;
}

/// A launch over rows that stay in registers where they fit.
template <class G>
device::LaunchConfig config_of(const char* name, std::int64_t rows, void* stream) {
  return {.name = name,
          .grid = {blocks_for(rows, G::block_rows)},
          .block = {G::threads},
          .stream = stream};
}

}  // namespace

template <class T>
void softmax(const T* x, std::int64_t rows, std::int64_t width, bool log, T* out, void* stream) {
  if (rows == 0 || width == 0) return;
  with_rows<T, 4>(width, {x, out}, [&]<class G>() {
    device::launch(config_of<G>("softmax", rows, stream), softmax_kernel<T, G>, x, rows, width, log,
                   out);
  });
}

template <class T>
void softmax_backward(const T* y, const T* dy, std::int64_t rows, std::int64_t width, bool log,
                      T* dx, void* stream) {
  if (rows == 0 || width == 0) return;
  with_rows<T, 4>(width, {y, dy, dx}, [&]<class G>() {
    device::launch(config_of<G>("softmax_backward", rows, stream), softmax_backward_kernel<T, G>, y,
                   dy, rows, width, log, dx);
  });
}

template <class T>
void cross_entropy(const CrossEntropy<T>& a, statistic_t<T>* loss, statistic_t<T>* logsumexp,
                   void* stream) {
  if (a.rows == 0) return;
  with_rows<T, 4>(a.classes, {a.logits, a.weight}, [&]<class G>() {
    device::launch(config_of<G>("cross_entropy", a.rows, stream), cross_entropy_kernel<T, G>, a,
                   smoothing_of(a), loss, logsumexp);
  });
}

template <class T>
void cross_entropy_backward(const CrossEntropy<T>& a, const statistic_t<T>* logsumexp,
                            const statistic_t<T>* dloss, T* dlogits, void* stream) {
  if (a.rows == 0 || a.classes == 0) return;
  with_rows<T, 4>(a.classes, {a.logits, a.weight, dlogits}, [&]<class G>() {
    device::launch(config_of<G>("cross_entropy_backward", a.rows, stream),
                   cross_entropy_backward_kernel<T, G>, a, smoothing_of(a), logsumexp, dloss,
                   dlogits);
  });
}

template <class T>
void mean_variance(const T* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner,
                   statistic_t<T>* mean, statistic_t<T>* variance, void* stream) {
  if (outer == 0 || inner == 0) return;
  if (inner == 1) {
    with_rows<T, 4>(reduced, {x}, [&]<class G>() {
      device::launch(config_of<G>("row_moments", outer, stream), row_moments_kernel<T, G>, x, outer,
                     reduced, mean, variance);
    });
    return;
  }
  device::launch({.name = "column_moments",
                  .grid = {blocks_for(inner, tile_columns) * static_cast<unsigned>(outer)},
                  .block = {tile_columns, tile_rows},
                  .stream = stream},
                 column_moments_kernel<T>, x, reduced, inner, mean, variance);
}

#define NORMA_SOFTMAX(T)                                                                           \
  template void softmax<T>(const T*, std::int64_t, std::int64_t, bool, T*, void*);                 \
  template void softmax_backward<T>(const T*, const T*, std::int64_t, std::int64_t, bool, T*,      \
                                    void*);                                                        \
  template void cross_entropy<T>(const CrossEntropy<T>&, statistic_t<T>*, statistic_t<T>*, void*); \
  template void cross_entropy_backward<T>(const CrossEntropy<T>&, const statistic_t<T>*,           \
                                          const statistic_t<T>*, T*, void*);                       \
  template void mean_variance<T>(const T*, std::int64_t, std::int64_t, std::int64_t,               \
                                 statistic_t<T>*, statistic_t<T>*, void*);
NORMA_SOFTMAX(float)
NORMA_SOFTMAX(double)
NORMA_SOFTMAX(Half)
NORMA_SOFTMAX(BFloat16)

}  // namespace norma::cuda_kernels
