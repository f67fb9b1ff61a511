// The devices that the suites run on.
#pragma once

#include "norma/core/tensor.h"

#include <vector>

namespace norma::test {

/// The CPU, and cuda(0) where this program has it: on a GPU, or emulated. NORMA_TEST_DEVICE=cpu or
/// cuda in the environment leaves one of them.
std::vector<Device> devices();

/// Whether a call with so many elements takes too long on `device`: the emulator needs many times
/// as long as the CPU, and sees what is wrong in one block or several. A GPU runs all. How many
/// were skipped stands on stderr at the end.
bool takes_too_long(const Device& device, std::int64_t elements);

/// A tensor on `device`; undefined stays undefined.
inline Tensor on_device(const Tensor& tensor, const Device& device) {
  return tensor.defined() ? tensor.to(device) : tensor;
}

/// A constant that a sample holds, where its inputs are.
inline Tensor beside(const Tensor& input, const Tensor& constant) {
  return on_device(constant, input.device());
}

}  // namespace norma::test
