// Operations on each element of one tensor, with their derivatives, on the device.
#pragma once

#include "norma/ops/op_codes.h"

#include <cstdint>

namespace norma::cuda_kernels {

/// out = op(x): elements of T, bool for predicates. T is floating point, or op takes integers.
template <class T>
void unary(UnaryOp op, const T* x, std::int64_t count, void* out, void* stream);
/// dx = dy op'(x), from x and y = op(x); `op` is differentiable.
template <class T>
void unary_backward(UnaryOp op, const T* x, const T* y, const T* dy, std::int64_t count, T* dx,
                    void* stream);

}  // namespace norma::cuda_kernels
