#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"
#include "norma/ops/cpu/row.h"
#include "norma/ops/cpu/stream.h"
#include "norma/ops/cpu/vec_math.h"

#include <type_traits>
#include <vector>

namespace norma::cpu_kernels {

namespace {

constexpr std::int64_t cost = 4;  // an element with its exponential, in units of a copy

/// out = exp(x - max), returns the sum. A loop of its own: the sum of what was stored vectorises
/// better than both at once.
template <class T, class C>
C exponentials(const T* x, C max, std::int64_t width, C* out) {
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i)
    out[i] = VecMath::exp_nonpositive(static_cast<C>(x[i]) - max);
  return row_sum<C>(width, [out](std::int64_t i) { return out[i]; });
}

void softmax(const Tensor& x, bool log, const Tensor& out) {
  const std::int64_t width = x.size(1), total = x.numel();
  visit_floating(x.dtype(), "softmax", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const T* const px = x.data<T>();
    T* const po = out.data<T>();
    parallel_for(x.size(0), cost * width, [=](std::int64_t begin, std::int64_t end) {
      std::vector<C> buffer;  // where the output cannot hold the exponentials
      if (!std::is_same_v<T, C>) buffer.resize(static_cast<std::size_t>(width));
      std::vector<T> scratch(static_cast<std::size_t>(width));
      const RowStream<T> stream(po, width, total, scratch.data());
      for (std::int64_t row = begin; row < end; ++row) {
        const T* const rx = px + row * width;
        T* const ro = stream.target(row);
        const C max = row_max<C>(width, [rx](std::int64_t i) { return static_cast<C>(rx[i]); });
        C* values = buffer.data();
        if constexpr (std::is_same_v<T, C>) values = ro;
        const C sum = exponentials(rx, max, width, values);
        if (log) {
          const C log_sum = VecMath::log(sum);
#pragma omp simd
          for (std::int64_t i = 0; i < width; ++i)
            ro[i] = static_cast<T>((static_cast<C>(rx[i]) - max) - log_sum);
        } else {
          const C scale = C(1) / sum;
#pragma omp simd
          for (std::int64_t i = 0; i < width; ++i) ro[i] = static_cast<T>(values[i] * scale);
        }
        stream.store(row, 1);
      }
    });
  });
}

void softmax_backward(const Tensor& y, const Tensor& dy, bool log, const Tensor& dx) {
  const std::int64_t width = y.size(1), total = y.numel();
  visit_floating(y.dtype(), "softmax_backward", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const T* const py = y.data<T>();
    const T* const pdy = dy.data<T>();
    T* const pdx = dx.data<T>();
    parallel_for(y.size(0), (log ? cost : 2) * width, [=](std::int64_t begin, std::int64_t end) {
      std::vector<T> scratch(static_cast<std::size_t>(width));
      const RowStream<T> stream(pdx, width, total, scratch.data());
      for (std::int64_t row = begin; row < end; ++row) {
        const T* const ry = py + row * width;
        const T* const rdy = pdy + row * width;
        T* const rdx = stream.target(row);
        if (log) {
          const C sum = row_sum<C>(width, [rdy](std::int64_t i) { return static_cast<C>(rdy[i]); });
#pragma omp simd
          for (std::int64_t i = 0; i < width; ++i)
            rdx[i] = static_cast<T>(static_cast<C>(rdy[i]) -
                                    VecMath::exp_nonpositive(static_cast<C>(ry[i])) * sum);
        } else {
          const C dot = row_sum<C>(width, [rdy, ry](std::int64_t i) {
            return static_cast<C>(rdy[i]) * static_cast<C>(ry[i]);
          });
#pragma omp simd
          for (std::int64_t i = 0; i < width; ++i)
            rdx[i] = static_cast<T>(static_cast<C>(ry[i]) * (static_cast<C>(rdy[i]) - dot));
        }
        stream.store(row, 1);
      }
    });
  });
}

}  // namespace

void add_softmax_kernels(Backend& table) {
  table.softmax = softmax;
  table.softmax_backward = softmax_backward;
}

}  // namespace norma::cpu_kernels
