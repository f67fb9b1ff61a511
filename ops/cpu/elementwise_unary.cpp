// Unary elementwise kernels with their derivatives, the activations among them.
#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"
#include "norma/ops/cpu/vec_math.h"

#include <cmath>
#include <numbers>
#include <type_traits>

namespace norma::cpu_kernels {

namespace {

template <class C>
inline C normal_cdf(C x) {
  return C(0.5) * (C(1) + vec::erf(x * (C(1) / std::numbers::sqrt2_v<C>)));
}

/// Argument of the tanh in the approximate GELU: sqrt(2 / pi) (x + 0.044715 x^3).
template <class C>
inline constexpr C gelu_scale = std::numbers::sqrt2_v<C>* std::numbers::inv_sqrtpi_v<C>;
template <class C>
inline C gelu_argument(C x) {
  return gelu_scale<C> * x * (C(1) + C(0.044715) * x * x);
}

/// op(x) for a floating-point compute type.
template <UnaryOp op, class C>
inline C value(C x) {
  if constexpr (op == UnaryOp::neg)
    return -x;
  else if constexpr (op == UnaryOp::abs)
    return std::fabs(x);
  else if constexpr (op == UnaryOp::sign) {
    return static_cast<C>(x > C(0)) - static_cast<C>(x < C(0));  // sign(NaN) is 0, as in PyTorch
  } else if constexpr (op == UnaryOp::exp)
    return vec::exp(x);
  else if constexpr (op == UnaryOp::log)
    return vec::log(x);
  else if constexpr (op == UnaryOp::log1p)
    return vec::log1p(x);
  else if constexpr (op == UnaryOp::sqrt)
    return std::sqrt(x);
  else if constexpr (op == UnaryOp::rsqrt)
    return C(1) / std::sqrt(x);
  else if constexpr (op == UnaryOp::reciprocal)
    return C(1) / x;
  else if constexpr (op == UnaryOp::square)
    return x * x;
  else if constexpr (op == UnaryOp::sin)
    return std::sin(x);
  else if constexpr (op == UnaryOp::cos)
    return std::cos(x);
  else if constexpr (op == UnaryOp::tanh)
    return vec::tanh(x);
  else if constexpr (op == UnaryOp::sigmoid)
    return vec::sigmoid(x);
  else if constexpr (op == UnaryOp::erf)
    return vec::erf(x);
  else if constexpr (op == UnaryOp::relu)
    return x < C(0) ? C(0) : x;  // NaN stays
  else if constexpr (op == UnaryOp::gelu)
    return x * normal_cdf(x);
  else if constexpr (op == UnaryOp::gelu_tanh) {
    return C(0.5) * x * (C(1) + vec::tanh(gelu_argument(x)));
  } else if constexpr (op == UnaryOp::silu)
    return x * vec::sigmoid(x);
  else {
    static_assert(op == UnaryOp::softplus);
    // Without overflow for any x: log(1 + e^x) = max(x, 0) + log(1 + e^-|x|).
    return (x < C(0) ? C(0) : x) + vec::log1p(vec::exp_nonpositive(-std::fabs(x)));
  }
}

/// dy * op'(x), where y = op(x).
template <UnaryOp op, class C>
inline C backward_value([[maybe_unused]] C x, [[maybe_unused]] C y, C dy) {
  if constexpr (op == UnaryOp::neg)
    return -dy;
  else if constexpr (op == UnaryOp::abs) {
    return dy * (static_cast<C>(x > C(0)) - static_cast<C>(x < C(0)));
  } else if constexpr (op == UnaryOp::exp)
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
    return dy * std::cos(x);
  else if constexpr (op == UnaryOp::cos)
    return -dy * std::sin(x);
  else if constexpr (op == UnaryOp::tanh)
    return dy * (C(1) - y * y);
  else if constexpr (op == UnaryOp::sigmoid)
    return dy * y * (C(1) - y);
  else if constexpr (op == UnaryOp::erf) {
    return dy * (C(2) * std::numbers::inv_sqrtpi_v<C>)*vec::exp_nonpositive(-x * x);
  } else if constexpr (op == UnaryOp::relu)
    return y <= C(0) ? C(0) : dy;
  else if constexpr (op == UnaryOp::gelu) {
    const C density = C(0.5) * gelu_scale<C> * vec::exp_nonpositive(C(-0.5) * x * x);
    return dy * (normal_cdf(x) + x * density);
  } else if constexpr (op == UnaryOp::gelu_tanh) {
    const C t = vec::tanh(gelu_argument(x));
    const C slope = gelu_scale<C> * (C(1) + C(3 * 0.044715) * x * x);
    return C(0.5) * dy * (C(1) + t + x * (C(1) - t * t) * slope);
  } else if constexpr (op == UnaryOp::silu) {
    const C s = vec::sigmoid(x);
    return dy * s * (C(1) + x * (C(1) - s));
  } else {
    static_assert(op == UnaryOp::softplus);
    return dy * vec::sigmoid(x);
  }
}

template <UnaryOp op>
using OpTag = std::integral_constant<UnaryOp, op>;

/// Work of one element in units of a plain copy, for parallel_for.
constexpr std::int64_t cost_of(UnaryOp op) {
  if (op == UnaryOp::sin || op == UnaryOp::cos) return 16;
  return op >= UnaryOp::exp ? 4 : 1;
}

/// Calls f with the tag of a differentiable `op`.
template <class F>
void visit(UnaryOp op, F&& f) {
  switch (op) {
    case UnaryOp::neg:
      return f(OpTag<UnaryOp::neg>{});
    case UnaryOp::abs:
      return f(OpTag<UnaryOp::abs>{});
    case UnaryOp::exp:
      return f(OpTag<UnaryOp::exp>{});
    case UnaryOp::log:
      return f(OpTag<UnaryOp::log>{});
    case UnaryOp::log1p:
      return f(OpTag<UnaryOp::log1p>{});
    case UnaryOp::sqrt:
      return f(OpTag<UnaryOp::sqrt>{});
    case UnaryOp::rsqrt:
      return f(OpTag<UnaryOp::rsqrt>{});
    case UnaryOp::reciprocal:
      return f(OpTag<UnaryOp::reciprocal>{});
    case UnaryOp::square:
      return f(OpTag<UnaryOp::square>{});
    case UnaryOp::sin:
      return f(OpTag<UnaryOp::sin>{});
    case UnaryOp::cos:
      return f(OpTag<UnaryOp::cos>{});
    case UnaryOp::tanh:
      return f(OpTag<UnaryOp::tanh>{});
    case UnaryOp::sigmoid:
      return f(OpTag<UnaryOp::sigmoid>{});
    case UnaryOp::erf:
      return f(OpTag<UnaryOp::erf>{});
    case UnaryOp::relu:
      return f(OpTag<UnaryOp::relu>{});
    case UnaryOp::gelu:
      return f(OpTag<UnaryOp::gelu>{});
    case UnaryOp::gelu_tanh:
      return f(OpTag<UnaryOp::gelu_tanh>{});
    case UnaryOp::silu:
      return f(OpTag<UnaryOp::silu>{});
    case UnaryOp::softplus:
      return f(OpTag<UnaryOp::softplus>{});
    default:
      throw NotImplementedError("unary", "this operation has no floating-point kernel");
  }
}

template <class In, class Out, class F>
void map(const Tensor& x, const Tensor& out, std::int64_t cost, F f) {
  const In* const px = x.data<In>();
  Out* const po = out.data<Out>();
  parallel_for(x.numel(), cost, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) po[i] = f(px[i]);
  });
}

/// The operations that integers and bool have, too, or whose result is bool.
bool unary_any_dtype(UnaryOp op, const Tensor& x, const Tensor& out) {
  bool done = true;
  visit_all(x.dtype(), [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    if (op == UnaryOp::logical_not)
      return map<T, bool>(x, out, 1, [](T v) { return C(v) == C(0); });
    if (op == UnaryOp::isnan) return map<T, bool>(x, out, 1, [](T v) { return C(v) != C(v); });
    if (op == UnaryOp::isfinite)
      return map<T, bool>(x, out, 1, [](T v) { return C(v) - C(v) == C(0); });
    if (op == UnaryOp::sign)
      return map<T, T>(x, out, 1, [](T v) { return static_cast<T>(C(C(v) > 0) - C(C(v) < 0)); });
    if constexpr (std::is_integral_v<T>) {
      // Unsigned arithmetic: the smallest integer has no negative, and wraps to itself.
      using U = std::uint64_t;
      if (op == UnaryOp::neg)
        return map<T, T>(x, out, 1, [](T v) { return static_cast<T>(U{0} - static_cast<U>(v)); });
      if (op == UnaryOp::abs)
        return map<T, T>(x, out, 1, [](T v) {
          return static_cast<T>(v < T(0) ? U{0} - static_cast<U>(v) : static_cast<U>(v));
        });
      if (op == UnaryOp::square)
        return map<T, T>(x, out, 1,
                         [](T v) { return static_cast<T>(static_cast<U>(v) * static_cast<U>(v)); });
    }
    done = false;
  });
  return done;
}

void unary(UnaryOp op, const Tensor& x, const Tensor& out) {
  if (unary_any_dtype(op, x, out)) return;
  visit_floating(x.dtype(), "unary", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    visit(op, [&]<UnaryOp tag>(OpTag<tag>) {
      map<T, T>(x, out, cost_of(tag),
                [](T v) { return static_cast<T>(value<tag, C>(static_cast<C>(v))); });
    });
  });
}

void unary_backward(UnaryOp op, const Tensor& x, const Tensor& y, const Tensor& dy,
                    const Tensor& dx) {
  visit_floating(dy.dtype(), "unary_backward", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const T* const px = x.data<T>();
    const T* const py = y.data<T>();
    const T* const pdy = dy.data<T>();
    T* const pdx = dx.data<T>();
    visit(op, [&]<UnaryOp tag>(OpTag<tag>) {
      parallel_for(dy.numel(), cost_of(tag), [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i)
          pdx[i] = static_cast<T>(backward_value<tag, C>(
              static_cast<C>(px[i]), static_cast<C>(py[i]), static_cast<C>(pdy[i])));
      });
    });
  });
}

}  // namespace

void add_unary_kernels(Backend& table) {
  table.unary = unary;
  table.unary_backward = unary_backward;
}

}  // namespace norma::cpu_kernels
