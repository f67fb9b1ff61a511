// Tensors to pointers.
#pragma once

#include "norma/core/tensor.h"

namespace norma::cuda_kernels {

/// Null for an undefined tensor.
template <class T>
T* pointer(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

}  // namespace norma::cuda_kernels
