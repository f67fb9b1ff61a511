// Tensors to pointers.
#pragma once

#include "norma/core/tensor.h"

namespace norma::cuda_kernels {

/// Null for an undefined tensor.
template <class T>
T* pointer(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

/// Elements as unsigned numbers of their size, for kernels that only move bits.
template <class Bits>
Bits* bits(const Tensor& tensor) {
  return static_cast<Bits*>(tensor.raw_data());
}
/// Calls use(TypeTag<Bits>{}) with that type.
template <class Use>
void visit_bits(const Tensor& tensor, const Use& use) {
  switch (tensor.element_size()) {
    case 1:
      return use(TypeTag<std::uint8_t>{});
    case 2:
      return use(TypeTag<std::uint16_t>{});
    case 4:
      return use(TypeTag<std::uint32_t>{});
    default:
      return use(TypeTag<std::uint64_t>{});
  }
}

}  // namespace norma::cuda_kernels
