// The unary operations and their derivatives, the activations among them: one element.
#pragma once

#include "norma/ops/formulas/formula.h"

#include <cstdint>
#include <numbers>

namespace norma {

/// The operations whose result is bool.
constexpr bool is_predicate(UnaryOp op) { return op >= UnaryOp::logical_not; }
/// The operations that integers and bool have, too.
constexpr bool takes_integers(UnaryOp op) {
  return is_predicate(op) || op == UnaryOp::neg || op == UnaryOp::abs || op == UnaryOp::sign ||
         op == UnaryOp::square;
}
/// The operations that have a kernel for their gradient.
constexpr bool is_differentiable(UnaryOp op) { return !is_predicate(op) && op != UnaryOp::sign; }

namespace formulas {

template <class C>
NORMA_FORMULA C sign(C x) {
  return static_cast<C>(x > C(0)) - static_cast<C>(x < C(0));  // of NaN 0, as in PyTorch
}

/// Argument of the tanh in the approximate GELU: sqrt(2 / pi) (x + 0.044715 x^3).
template <class C>
inline constexpr C gelu_scale = std::numbers::sqrt2_v<C>* std::numbers::inv_sqrtpi_v<C>;
template <class C>
NORMA_FORMULA C gelu_argument(C x) {
  return gelu_scale<C> * x * (C(1) + C(0.044715) * x * x);
}

/// op(x), where integers have it. They are computed without a sign: the smallest has no negative,
/// and wraps to itself.
template <UnaryOp op, class Math>
NORMA_FORMULA auto unary(std::int64_t x) {
  static_assert(takes_integers(op));
  [[maybe_unused]] const auto bits = static_cast<std::uint64_t>(x);
  if constexpr (op == UnaryOp::neg)
    return static_cast<std::int64_t>(0 - bits);
  else if constexpr (op == UnaryOp::abs)
    return static_cast<std::int64_t>(x < 0 ? 0 - bits : bits);
  else if constexpr (op == UnaryOp::square)
    return static_cast<std::int64_t>(bits * bits);
  else if constexpr (op == UnaryOp::sign)
    return sign(x);
  else if constexpr (op == UnaryOp::logical_not)
    return x == 0;
  else
    return op == UnaryOp::isfinite;
}

/// op(x) of a floating-point number.
template <UnaryOp op, class Math, class C>
NORMA_FORMULA auto unary(C x) {
  if constexpr (op == UnaryOp::neg)
    return -x;
  else if constexpr (op == UnaryOp::abs)
    return Math::abs(x);
  else if constexpr (op == UnaryOp::sign)
    return sign(x);
  else if constexpr (op == UnaryOp::exp)
    return Math::exp(x);
  else if constexpr (op == UnaryOp::log)
    return Math::log(x);
  else if constexpr (op == UnaryOp::log1p)
    return Math::log1p(x);
  else if constexpr (op == UnaryOp::sqrt)
    return Math::sqrt(x);
  else if constexpr (op == UnaryOp::rsqrt)
    return C(1) / Math::sqrt(x);
  else if constexpr (op == UnaryOp::reciprocal)
    return C(1) / x;
  else if constexpr (op == UnaryOp::square)
    return x * x;
  else if constexpr (op == UnaryOp::sin)
    return Math::sin(x);
  else if constexpr (op == UnaryOp::cos)
    return Math::cos(x);
  else if constexpr (op == UnaryOp::tanh)
    return Math::tanh(x);
  else if constexpr (op == UnaryOp::sigmoid)
    return Math::sigmoid(x);
  else if constexpr (op == UnaryOp::erf)
    return Math::erf(x);
  else if constexpr (op == UnaryOp::relu)
    return x < C(0) ? C(0) : x;  // NaN stays
  else if constexpr (op == UnaryOp::gelu)
    return x * Math::normal(x).cdf;
  else if constexpr (op == UnaryOp::gelu_tanh)
    return C(0.5) * x * (C(1) + Math::tanh(gelu_argument(x)));
  else if constexpr (op == UnaryOp::silu)
    return x * Math::sigmoid(x);
  else if constexpr (op == UnaryOp::softplus)
    // Without overflow for any x: log(1 + e^x) = max(x, 0) + log(1 + e^-|x|).
    return (x < C(0) ? C(0) : x) + Math::log1p(Math::exp_nonpositive(-Math::abs(x)));
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
template <UnaryOp op, class Math, class C>
NORMA_FORMULA C unary_backward([[maybe_unused]] C x, [[maybe_unused]] C y, C dy) {
  if constexpr (op == UnaryOp::neg)
    return -dy;
  else if constexpr (op == UnaryOp::abs)
    return dy * sign(x);
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
    return dy * Math::cos(x);
  else if constexpr (op == UnaryOp::cos)
    return -dy * Math::sin(x);
  else if constexpr (op == UnaryOp::tanh)
    return dy * (C(1) - y * y);
  else if constexpr (op == UnaryOp::sigmoid)
    return dy * y * (C(1) - y);
  else if constexpr (op == UnaryOp::erf)
    return dy * (C(2) * std::numbers::inv_sqrtpi_v<C>)*Math::exp_nonpositive(-x * x);
  else if constexpr (op == UnaryOp::relu)
    return y <= C(0) ? C(0) : dy;
  else if constexpr (op == UnaryOp::gelu) {
    const auto normal = Math::normal(x);
    return dy * (normal.cdf + x * normal.density);
  } else if constexpr (op == UnaryOp::gelu_tanh) {
    const C t = Math::tanh(gelu_argument(x));
    const C slope = gelu_scale<C> * (C(1) + C(3 * 0.044715) * x * x);
    return C(0.5) * dy * (C(1) + t + x * (C(1) - t * t) * slope);
  } else if constexpr (op == UnaryOp::silu) {
    const C s = Math::sigmoid(x);
    return dy * s * (C(1) + x * (C(1) - s));
  } else {
    static_assert(op == UnaryOp::softplus);
    return dy * Math::sigmoid(x);
  }
}

}  // namespace formulas

}  // namespace norma
