#include "norma/cuda/kernels/elementwise_unary.h"

#include "norma/cuda/kernels/element.cuh"
#include "norma/cuda/kernels/loop.cuh"
#include "norma/cuda/kernels/math.cuh"
#include "norma/cuda/kernels/op_tag.h"

#include <numbers>

namespace norma::cuda_kernels {

namespace {

template <class C>
__device__ __forceinline__ C normal_cdf(C x) {
  return C(0.5) * (C(1) + error_function(x * (C(1) / std::numbers::sqrt2_v<C>)));
}

/// Argument of the tanh in the approximate GELU: sqrt(2 / pi) (x + 0.044715 x^3).
template <class C>
inline constexpr C gelu_scale = std::numbers::sqrt2_v<C>* std::numbers::inv_sqrtpi_v<C>;
template <class C>
__device__ __forceinline__ C gelu_argument(C x) {
  return gelu_scale<C> * x * (C(1) + C(0.044715) * x * x);
}

template <class C>
__device__ __forceinline__ C sign_of(C x) {
  return static_cast<C>(x > C(0)) - static_cast<C>(x < C(0));  // of NaN 0, as in PyTorch
}

/// op(x), where integers have it. They are computed without a sign: the smallest has no negative,
/// and wraps to itself.
template <UnaryOp op>
__device__ __forceinline__ auto value(std::int64_t x) {
  [[maybe_unused]] const auto bits = static_cast<std::uint64_t>(x);
  if constexpr (op == UnaryOp::logical_not)
    return x == 0;
  else if constexpr (op == UnaryOp::isnan)
    return false;
  else if constexpr (op == UnaryOp::isfinite)
    return true;
  else if constexpr (op == UnaryOp::sign)
    return sign_of(x);
  else if constexpr (op == UnaryOp::neg)
    return static_cast<std::int64_t>(0 - bits);
  else if constexpr (op == UnaryOp::abs)
    return static_cast<std::int64_t>(x < 0 ? 0 - bits : bits);
  else {
    static_assert(op == UnaryOp::square);
    return static_cast<std::int64_t>(bits * bits);
  }
}

/// op(x) of a floating-point number.
template <UnaryOp op, class C>
__device__ __forceinline__ auto value(C x) {
  if constexpr (op == UnaryOp::neg)
    return -x;
  else if constexpr (op == UnaryOp::abs)
    return magnitude(x);
  else if constexpr (op == UnaryOp::sign)
    return sign_of(x);
  else if constexpr (op == UnaryOp::exp)
    return exponential(x);
  else if constexpr (op == UnaryOp::log)
    return logarithm(x);
  else if constexpr (op == UnaryOp::log1p)
    return logarithm_1p(x);
  else if constexpr (op == UnaryOp::sqrt)
    return square_root(x);
  else if constexpr (op == UnaryOp::rsqrt)
    return C(1) / square_root(x);
  else if constexpr (op == UnaryOp::reciprocal)
    return C(1) / x;
  else if constexpr (op == UnaryOp::square)
    return x * x;
  else if constexpr (op == UnaryOp::sin)
    return sine(x);
  else if constexpr (op == UnaryOp::cos)
    return cosine(x);
  else if constexpr (op == UnaryOp::tanh)
    return hyperbolic_tangent(x);
  else if constexpr (op == UnaryOp::sigmoid)
    return logistic(x);
  else if constexpr (op == UnaryOp::erf)
    return error_function(x);
  else if constexpr (op == UnaryOp::relu)
    return x < C(0) ? C(0) : x;  // NaN stays
  else if constexpr (op == UnaryOp::gelu)
    return x * normal_cdf(x);
  else if constexpr (op == UnaryOp::gelu_tanh)
    return C(0.5) * x * (C(1) + hyperbolic_tangent(gelu_argument(x)));
  else if constexpr (op == UnaryOp::silu)
    return x * logistic(x);
  else if constexpr (op == UnaryOp::softplus)
    // Without overflow for any x: log(1 + e^x) = max(x, 0) + log(1 + e^-|x|).
    return (x < C(0) ? C(0) : x) + logarithm_1p(exponential(-magnitude(x)));
  else if constexpr (op == UnaryOp::logical_not)
    return x == C(0);
  else if constexpr (op == UnaryOp::isnan)
    return x != x;
  else {
    static_assert(op == UnaryOp::isfinite);
    return x - x == C(0);
  }
}

/// dy op'(x), where y = op(x).
template <UnaryOp op, class C>
__device__ __forceinline__ C backward_value([[maybe_unused]] C x, [[maybe_unused]] C y, C dy) {
  if constexpr (op == UnaryOp::neg)
    return -dy;
  else if constexpr (op == UnaryOp::abs)
    return dy * sign_of(x);
  else if constexpr (op == UnaryOp::exp)
    return dy * y;
  else if constexpr (op == UnaryOp::log)
    return dy / x;
  else if constexpr (op == UnaryOp::log1p)
    return dy / (C(1) + x);
  else if constexpr (op == UnaryOp::sqrt)
    return dy / (C(2) * y);
  else if constexpr (op == UnaryOp::rsqrt)
    return C(-0.5) * dy * y * y * y;
  else if constexpr (op == UnaryOp::reciprocal)
    return -dy * y * y;
  else if constexpr (op == UnaryOp::square)
    return C(2) * dy * x;
  else if constexpr (op == UnaryOp::sin)
    return dy * cosine(x);
  else if constexpr (op == UnaryOp::cos)
    return -dy * sine(x);
  else if constexpr (op == UnaryOp::tanh)
    return dy * (C(1) - y * y);
  else if constexpr (op == UnaryOp::sigmoid)
    return dy * y * (C(1) - y);
  else if constexpr (op == UnaryOp::erf)
    return dy * (C(2) * std::numbers::inv_sqrtpi_v<C>)*exponential(-x * x);
  else if constexpr (op == UnaryOp::relu)
    return y <= C(0) ? C(0) : dy;
  else if constexpr (op == UnaryOp::gelu) {
    const C density = C(0.5) * gelu_scale<C> * exponential(C(-0.5) * x * x);
    return dy * (normal_cdf(x) + x * density);
  } else if constexpr (op == UnaryOp::gelu_tanh) {
    const C t = hyperbolic_tangent(gelu_argument(x));
    const C slope = gelu_scale<C> * (C(1) + C(3 * 0.044715) * x * x);
    return C(0.5) * dy * (C(1) + t + x * (C(1) - t * t) * slope);
  } else if constexpr (op == UnaryOp::silu) {
    const C s = logistic(x);
    return dy * s * (C(1) + x * (C(1) - s));
  } else {
    static_assert(op == UnaryOp::softplus);
    return dy * logistic(x);
  }
}

template <UnaryOp op, class T>
using result_t = std::conditional_t<is_predicate(op), bool, T>;

template <UnaryOp op, class T>
__global__ void unary_kernel(const T* x, std::int64_t count, result_t<op, T>* out) {
  for_each_index(count, [=](std::int64_t i) {
    out[i] = element<result_t<op, T>>(value<op>(element<compute_t<T>>(x[i])));
  });
}

template <UnaryOp op, class T>
__global__ void unary_backward_kernel(const T* x, const T* y, const T* dy, std::int64_t count,
                                      T* dx) {
  using C = compute_t<T>;
  for_each_index(count, [=](std::int64_t i) {
    dx[i] = element<T>(backward_value<op>(element<C>(x[i]), element<C>(y[i]), element<C>(dy[i])));
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
