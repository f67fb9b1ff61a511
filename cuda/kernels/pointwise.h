// Element-wise operations on the device.
#pragma once

#include "norma/core/philox.h"

#include <cstdint>

namespace norma::cuda_kernels {

/// out = x / (1 - p) where word i of the stream keeps element i, else 0: as on the CPU.
template <class T>
void dropout(const T* x, std::int64_t count, double p, const PhiloxState& state, T* out,
             void* stream);
/// out = cap * tanh(x / cap).
template <class T>
void softcap(const T* x, std::int64_t count, double cap, T* out, void* stream);
/// dx = dy (1 - (y / cap)^2).
template <class T>
void softcap_backward(const T* y, std::int64_t count, double cap, const T* dy, T* dx, void* stream);

}  // namespace norma::cuda_kernels
