// Operations on each element of one tensor, with their derivatives, on the device.
#pragma once

#include "norma/ops/op_codes.h"

#include <cstdint>

namespace norma::cuda_kernels {

/// The operations whose result is bool.
constexpr bool is_predicate(UnaryOp op) { return op >= UnaryOp::logical_not; }
/// The operations that integers and bool have, too.
constexpr bool takes_integers(UnaryOp op) {
  return is_predicate(op) || op == UnaryOp::neg || op == UnaryOp::abs || op == UnaryOp::sign ||
         op == UnaryOp::square;
}
/// The operations that have a kernel for their gradient.
constexpr bool is_differentiable(UnaryOp op) { return !is_predicate(op) && op != UnaryOp::sign; }

/// out = op(x): elements of T, bool for predicates. T is floating point, or op takes integers.
template <class T>
void unary(UnaryOp op, const T* x, std::int64_t count, void* out, void* stream);
/// dx = dy op'(x), from x and y = op(x); `op` is differentiable.
template <class T>
void unary_backward(UnaryOp op, const T* x, const T* y, const T* dy, std::int64_t count, T* dx,
                    void* stream);

}  // namespace norma::cuda_kernels
