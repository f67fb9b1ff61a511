// Filling and copying on the device.
#pragma once

#include "norma/cuda/kernels/strided.h"

#include <cstdint>

namespace norma::cuda_kernels {

template <class T>
void fill(T* out, std::int64_t count, T value, void* stream);
/// With conversion of the elements.
template <class To, class From>
void copy(To* to, const From* from, const StridedShape<2>& shape, void* stream);

}  // namespace norma::cuda_kernels
