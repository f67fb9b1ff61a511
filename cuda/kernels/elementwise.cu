#include "norma/cuda/kernels/elementwise.h"

#include "norma/cuda/kernels/element.cuh"
#include "norma/cuda/kernels/math.cuh"
#include "norma/cuda/kernels/strided.cuh"

#include <limits>

namespace norma::cuda_kernels {

namespace {

template <class T>
__global__ void clamp_kernel(const T* x, compute_t<T> low, compute_t<T> high, std::int64_t count,
                             T* out) {
  for_each_index(count, [=](std::int64_t i) {
    compute_t<T> value = element<compute_t<T>>(x[i]);
    value = value < low ? low : value;
    value = value > high ? high : value;
    out[i] = element<T>(value);
  });
}

template <class T>
__global__ void where_kernel(StridedShape<4> shape, const bool* condition, const T* a, const T* b,
                             T* out) {
  for_each_offset(shape,
                  [&](const auto& at) { out[at[0]] = condition[at[1]] ? a[at[2]] : b[at[3]]; });
}

template <class T>
__global__ void add_scaled_kernel(T* out, const T* x, compute_t<T> alpha, std::int64_t count) {
  using C = compute_t<T>;
  for_each_index(count, [=](std::int64_t i) {
    out[i] = element<T>(element<C>(out[i]) + alpha * element<C>(x[i]));
  });
}

template <class T>
__global__ void swiglu_kernel(const T* gate, const T* up, std::int64_t count, T* out) {
  using C = compute_t<T>;
  for_each_index(count, [=](std::int64_t i) {
    const C g = element<C>(gate[i]);
    out[i] = element<T>(g * DeviceMath::sigmoid(g) * element<C>(up[i]));
  });
}

template <class T>
__global__ void swiglu_backward_kernel(const T* gate, const T* up, const T* dy, std::int64_t count,
                                       T* dgate, T* dup) {
  using C = compute_t<T>;
  for_each_index(count, [=](std::int64_t i) {
    const C g = element<C>(gate[i]), d = element<C>(dy[i]);
    const C s = DeviceMath::sigmoid(g);
    if (dgate != nullptr)
      dgate[i] = element<T>(d * element<C>(up[i]) * (s * (C(1) + g * (C(1) - s))));
    if (dup != nullptr) dup[i] = element<T>(d * (g * s));
  });
}

/// `bound` in the type C, as the nearest value that it has.
template <class C>
C saturate(double bound) {
  if constexpr (std::is_integral_v<C>) {
    using Limits = std::numeric_limits<C>;
    if (bound <= static_cast<double>(Limits::min())) return Limits::min();
    if (bound >= static_cast<double>(Limits::max())) return Limits::max();
  }
  return static_cast<C>(bound);
}

}  // namespace

template <class T>
void clamp(const T* x, double min, double max, std::int64_t count, T* out, void* stream) {
  using C = compute_t<T>;
  if (count > 0)
    device::launch(loop_config("clamp", count, stream), clamp_kernel<T>, x, saturate<C>(min),
                   saturate<C>(max), count, out);
}
template <class T>
void where(const StridedShape<4>& shape, const bool* condition, const T* a, const T* b, T* out,
           void* stream) {
  if (shape.count > 0)
    device::launch(loop_config("where", shape.count, stream), where_kernel<T>, shape, condition, a,
                   b, out);
}
template <class T>
void add_scaled(T* out, const T* x, double alpha, std::int64_t count, void* stream) {
  if (count > 0)
    device::launch(loop_config("add_scaled", count, stream), add_scaled_kernel<T>, out, x,
                   static_cast<compute_t<T>>(alpha), count);
}
template <class T>
void swiglu(const T* gate, const T* up, std::int64_t count, T* out, void* stream) {
  if (count > 0)
    device::launch(loop_config("swiglu", count, stream), swiglu_kernel<T>, gate, up, count, out);
}
template <class T>
void swiglu_backward(const T* gate, const T* up, const T* dy, std::int64_t count, T* dgate, T* dup,
                     void* stream) {
  if (count > 0)
    device::launch(loop_config("swiglu_backward", count, stream), swiglu_backward_kernel<T>, gate,
                   up, dy, count, dgate, dup);
}

#define NORMA_ELEMENTWISE(T)                                                 \
  template void clamp<T>(const T*, double, double, std::int64_t, T*, void*); \
  template void add_scaled<T>(T*, const T*, double, std::int64_t, void*);
#define NORMA_WHERE(Bits)                                                                         \
  template void where<Bits>(const StridedShape<4>&, const bool*, const Bits*, const Bits*, Bits*, \
                            void*);
#define NORMA_SWIGLU(T)                                                 \
  template void swiglu<T>(const T*, const T*, std::int64_t, T*, void*); \
  template void swiglu_backward<T>(const T*, const T*, const T*, std::int64_t, T*, T*, void*);
NORMA_FOR_ALL_TYPES(NORMA_ELEMENTWISE)
NORMA_FOR_SIZES(NORMA_WHERE)
NORMA_FOR_FLOATING_TYPES(NORMA_SWIGLU)

}  // namespace norma::cuda_kernels
