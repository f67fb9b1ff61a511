// The binary operations: one element of each operand.
#pragma once

#include "norma/ops/formulas/formula.h"

#include <cstdint>

namespace norma {

/// The operations whose result is bool.
constexpr bool is_logical(BinaryOp op) { return op >= BinaryOp::eq; }

namespace formulas {

/// A negative exponent gives what rounding toward zero of the real power gives, as in PyTorch.
NORMA_FORMULA std::int64_t integer_pow(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  std::uint64_t result = 1;
  for (auto square = static_cast<std::uint64_t>(base); exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= square;
    square *= square;
  }
  return static_cast<std::int64_t>(result);
}

/// a op b in the compute type C. Integers have no div, and wrap: they are computed without a sign,
/// where that is defined.
template <BinaryOp op, class Math, class C>
NORMA_FORMULA auto binary(C a, C b) {
  constexpr bool integral = std::is_integral_v<C>;
  using Wrapping = std::conditional_t<integral, std::uint64_t, C>;
  [[maybe_unused]] const auto wa = static_cast<Wrapping>(a);
  [[maybe_unused]] const auto wb = static_cast<Wrapping>(b);
  if constexpr (op == BinaryOp::add)
    return static_cast<C>(wa + wb);
  else if constexpr (op == BinaryOp::sub)
    return static_cast<C>(wa - wb);
  else if constexpr (op == BinaryOp::mul)
    return static_cast<C>(wa * wb);
  else if constexpr (op == BinaryOp::div) {
    static_assert(!integral);
    return a / b;
  } else if constexpr (op == BinaryOp::pow && integral)
    return integer_pow(a, b);
  else if constexpr (op == BinaryOp::pow)
    return Math::pow(a, b);
  else if constexpr (op == BinaryOp::maximum)
    return (a > b || a != a) ? a : b;  // NaN from either side
  else if constexpr (op == BinaryOp::minimum)
    return (a < b || a != a) ? a : b;
  else if constexpr (op == BinaryOp::eq)
    return a == b;
  else if constexpr (op == BinaryOp::ne)
    return a != b;
  else if constexpr (op == BinaryOp::lt)
    return a < b;
  else if constexpr (op == BinaryOp::le)
    return a <= b;
  else if constexpr (op == BinaryOp::gt)
    return a > b;
  else if constexpr (op == BinaryOp::ge)
    return a >= b;
  // Both sides are looked at: without a branch the loop vectorises.
  else if constexpr (op == BinaryOp::logical_and)
    return static_cast<bool>(static_cast<int>(a != C(0)) & static_cast<int>(b != C(0)));
  else {
    static_assert(op == BinaryOp::logical_or);
    return static_cast<bool>(static_cast<int>(a != C(0)) | static_cast<int>(b != C(0)));
  }
}

}  // namespace formulas

}  // namespace norma
