// Elementwise kernels that are neither plain unary nor plain binary: clamp, where, add_scaled.
#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/strided.h"

#include <limits>

namespace norma::cpu_kernels {

namespace {

/// `bound` in the type T, as the nearest value that it has.
template <class T>
T saturate(double bound) {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (bound <= static_cast<double>(Limits::min())) return Limits::min();
    if (bound >= static_cast<double>(Limits::max())) return Limits::max();
  }
  return static_cast<T>(bound);
}

void clamp(const Tensor& x, double min, double max, const Tensor& out) {
  visit_all(x.dtype(), [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const C low = saturate<C>(min);
    const C high = saturate<C>(max);
    const T* const px = x.data<T>();
    T* const po = out.data<T>();
    parallel_for(x.numel(), 1, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        C value = static_cast<C>(px[i]);
        value = value < low ? low : value;  // NaN stays; low > high gives high, as in PyTorch
        value = value > high ? high : value;
        po[i] = static_cast<T>(value);
      }
    });
  });
}

void where(const Tensor& condition, const Tensor& a, const Tensor& b, const Tensor& out) {
  visit_all(out.dtype(), [&]<class T>(TypeTag<T>) {
    const bool* const c_data = condition.data<bool>();
    const T* const a_data = a.data<T>();
    const T* const b_data = b.data<T>();
    T* const out_data = out.data<T>();
    const StridedLoop<3> loop(out.shape(), {condition.strides(), a.strides(), b.strides()});
    const std::int64_t sc = loop.inner_stride(0);
    const std::int64_t sa = loop.inner_stride(1);
    const std::int64_t sb = loop.inner_stride(2);
    loop.run(
        [=](std::int64_t begin, const std::array<std::int64_t, 3>& offsets, std::int64_t count) {
          const bool* const pc = c_data + offsets[0];
          const T* const pa = a_data + offsets[1];
          const T* const pb = b_data + offsets[2];
          T* const po = out_data + begin;
          if (sc == 1 && sa == 1 && sb == 0) {  // masked_fill and the gradients of where
            const T other = *pb;
            for (std::int64_t i = 0; i < count; ++i) po[i] = pc[i] ? pa[i] : other;
          } else if (sc == 1 && sa == 0 && sb == 1) {
            const T other = *pa;
            for (std::int64_t i = 0; i < count; ++i) po[i] = pc[i] ? other : pb[i];
          } else {
            for (std::int64_t i = 0; i < count; ++i) po[i] = pc[i * sc] ? pa[i * sa] : pb[i * sb];
          }
        });
  });
}

void add_scaled(const Tensor& out, const Tensor& x, double alpha) {
  visit_all(out.dtype(), [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const C factor = static_cast<C>(alpha);
    const T* const px = x.data<T>();
    T* const po = out.data<T>();
    parallel_for(out.numel(), 1, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i)
        po[i] = static_cast<T>(static_cast<C>(po[i]) + factor * static_cast<C>(px[i]));
    });
  });
}

}  // namespace

void add_elementwise_kernels(Backend& table) {
  table.clamp = clamp;
  table.where = where;
  table.add_scaled = add_scaled;
}

}  // namespace norma::cpu_kernels
