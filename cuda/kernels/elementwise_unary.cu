#include "norma/cuda/kernels/elementwise_unary.h"

#include "norma/cuda/kernels/element.cuh"
#include "norma/cuda/kernels/loop.cuh"
#include "norma/cuda/kernels/math.cuh"
#include "norma/ops/formulas/unary.h"

namespace norma::cuda_kernels {

namespace {

template <UnaryOp op, class T>
using result_t = std::conditional_t<is_predicate(op), bool, T>;

template <UnaryOp op, class T>
__global__ void unary_kernel(const T* x, std::int64_t count, result_t<op, T>* out) {
  for_each_index(count, [=](std::int64_t i) {
    out[i] = element<result_t<op, T>>(formulas::unary<op, DeviceMath>(element<compute_t<T>>(x[i])));
  });
}

template <UnaryOp op, class T>
__global__ void unary_backward_kernel(const T* x, const T* y, const T* dy, std::int64_t count,
                                      T* dx) {
  using C = compute_t<T>;
  for_each_index(count, [=](std::int64_t i) {
    dx[i] = element<T>(formulas::unary_backward<op, DeviceMath>(element<C>(x[i]), element<C>(y[i]),
                                                                element<C>(dy[i])));
  });
}

}  // namespace

template <class T>
void unary(UnaryOp op, const T* x, std::int64_t count, void* out, void* stream) {
  if (count == 0) return;
  visit_op<UnaryOp::isfinite>(op, [&]<UnaryOp tag>(OpTag<tag>) {
    if constexpr (is_floating<T> || takes_integers(tag))
      device::launch(loop_config("unary", count, stream), unary_kernel<tag, T>, x, count,
                     static_cast<result_t<tag, T>*>(out));
  });
}

template <class T>
void unary_backward(UnaryOp op, const T* x, const T* y, const T* dy, std::int64_t count, T* dx,
                    void* stream) {
  if (count == 0) return;
  visit_op<UnaryOp::isfinite>(op, [&]<UnaryOp tag>(OpTag<tag>) {
    if constexpr (is_differentiable(tag))
      device::launch(loop_config("unary_backward", count, stream), unary_backward_kernel<tag, T>, x,
                     y, dy, count, dx);
  });
}

#define NORMA_UNARY(T) template void unary<T>(UnaryOp, const T*, std::int64_t, void*, void*);
#define NORMA_UNARY_BACKWARD(T) \
  template void unary_backward<T>(UnaryOp, const T*, const T*, const T*, std::int64_t, T*, void*);
NORMA_FOR_ALL_TYPES(NORMA_UNARY)
NORMA_FOR_FLOATING_TYPES(NORMA_UNARY_BACKWARD)

}  // namespace norma::cuda_kernels
