// Arithmetic, comparisons and logic of two operands on the device.
#pragma once

#include "norma/cuda/kernels/strided.h"
#include "norma/ops/op_codes.h"

namespace norma::cuda_kernels {

/// out = a op b; operands of `shape`: out, a, b. Elements of T, bool from logical operations.
/// Integers have no div.
template <class T>
void binary(BinaryOp op, const StridedShape<3>& shape, const T* a, const T* b, void* out,
            void* stream);
/// out = x op scalar, or scalar op x when `reversed`; the scalar is not rounded to 16 bits.
template <class T>
void binary_scalar(BinaryOp op, const T* x, double scalar, bool reversed, std::int64_t count,
                   void* out, void* stream);

}  // namespace norma::cuda_kernels
