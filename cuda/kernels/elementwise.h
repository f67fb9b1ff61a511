// Element-wise operations that are neither plain unary nor plain binary, on the device.
#pragma once

#include "norma/cuda/kernels/strided.h"

namespace norma::cuda_kernels {

/// NaN stays; min > max gives max, as in PyTorch.
template <class T>
void clamp(const T* x, double min, double max, std::int64_t count, T* out, void* stream);
/// out = condition ? a : b; operands of `shape`: out, condition, a, b. Only moves bits: T is an
/// unsigned type of the elements' size.
template <class T>
void where(const StridedShape<4>& shape, const bool* condition, const T* a, const T* b, T* out,
           void* stream);
/// out += alpha x.
template <class T>
void add_scaled(T* out, const T* x, double alpha, std::int64_t count, void* stream);
/// out = silu(gate) up.
template <class T>
void swiglu(const T* gate, const T* up, std::int64_t count, T* out, void* stream);
/// dgate and dup may be null.
template <class T>
void swiglu_backward(const T* gate, const T* up, const T* dy, std::int64_t count, T* dgate, T* dup,
                     void* stream);

}  // namespace norma::cuda_kernels
