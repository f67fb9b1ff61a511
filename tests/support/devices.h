// The devices that the suites run on.
#pragma once

#include "norma/core/device_start.h"
#include "norma/core/tensor.h"

#include <vector>

namespace norma::test {

/// The CPU, and cuda(0) where this build and machine have it (NORMA_CUDA=ON, or EMULATE).
inline std::vector<Device> devices() {
  return is_available(cuda(0)) ? std::vector<Device>{norma::cpu, cuda(0)}
                               : std::vector<Device>{norma::cpu};
}

/// A tensor on `device`; undefined stays undefined.
inline Tensor on_device(const Tensor& tensor, const Device& device) {
  return tensor.defined() ? tensor.to(device) : tensor;
}

/// A constant that a sample holds, where its inputs are.
inline Tensor beside(const Tensor& input, const Tensor& constant) {
  return on_device(constant, input.device());
}

}  // namespace norma::test
