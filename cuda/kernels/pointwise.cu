#include "norma/cuda/kernels/pointwise.h"

#include "norma/cuda/kernels/loop.cuh"
#include "norma/cuda/kernels/math.cuh"
#include "norma/cuda/philox.cuh"

namespace norma::cuda_kernels {

namespace {

using device::accumulate_t;
using device::convert;

/// Four neighbours a thread: one block of random words.
template <class T>
__global__ void dropout_kernel(const T* x, std::int64_t count, double p, PhiloxState state,
                               T* out) {
  using C = accumulate_t<T>;
  const C scale = device::dropout_scale<C>(p);
  for_each_index((count + 3) / 4, [&](std::int64_t block) {
    device::DropoutMask mask(state, p);
    for (std::int64_t i = 4 * block; i < 4 * block + 4 && i < count; ++i)
      out[i] = convert<T>(mask.keeps(i) ? convert<C>(x[i]) * scale : C(0));
  });
}

template <class T>
__global__ void softcap_kernel(const T* x, std::int64_t count, accumulate_t<T> cap, T* out) {
  using C = accumulate_t<T>;
  for_each_index(count, [=](std::int64_t i) {
    out[i] = convert<T>(cap * DeviceMath::tanh(convert<C>(x[i]) / cap));
  });
}

template <class T>
__global__ void softcap_backward_kernel(const T* y, std::int64_t count, accumulate_t<T> cap,
                                        const T* dy, T* dx) {
  using C = accumulate_t<T>;
  for_each_index(count, [=](std::int64_t i) {
    const C t = convert<C>(y[i]) / cap;
    dx[i] = convert<T>(convert<C>(dy[i]) * (C(1) - t * t));
  });
}

}  // namespace

template <class T>
void dropout(const T* x, std::int64_t count, double p, const PhiloxState& state, T* out,
             void* stream) {
  if (count > 0)
    device::launch(loop_config("dropout", (count + 3) / 4, stream), dropout_kernel<T>, x, count, p,
                   state, out);
}
template <class T>
void softcap(const T* x, std::int64_t count, double cap, T* out, void* stream) {
  if (count > 0)
    device::launch(loop_config("softcap", count, stream), softcap_kernel<T>, x, count,
                   static_cast<accumulate_t<T>>(cap), out);
}
template <class T>
void softcap_backward(const T* y, std::int64_t count, double cap, const T* dy, T* dx,
                      void* stream) {
  if (count > 0)
    device::launch(loop_config("softcap_backward", count, stream), softcap_backward_kernel<T>, y,
                   count, static_cast<accumulate_t<T>>(cap), dy, dx);
}

#define NORMA_POINTWISE(T)                                                                 \
  template void dropout<T>(const T*, std::int64_t, double, const PhiloxState&, T*, void*); \
  template void softcap<T>(const T*, std::int64_t, double, T*, void*);                     \
  template void softcap_backward<T>(const T*, std::int64_t, double, const T*, T*, void*);
NORMA_POINTWISE(float)
NORMA_POINTWISE(double)
NORMA_POINTWISE(Half)
NORMA_POINTWISE(BFloat16)

}  // namespace norma::cuda_kernels
