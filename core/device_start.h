// How core and ops reach a device's backend without knowing it: the backend registers its allocator
// and its kernels when it is first needed, so that a program with CUDA starts without it.
#pragma once

#include "norma/core/device.h"

namespace norma {

/// Whether tensors can live on `device`. As torch.cuda.is_available().
bool is_available(const Device& device);

namespace detail {
/// Starts the CUDA backend; why that is impossible, or nothing. ops/no_cuda.cpp, or cuda/runtime.
std::string start_cuda();
/// Starts the backend of `device`. Throws DeviceError where there is none.
void require_device(const char* operation, const Device& device);
}  // namespace detail

}  // namespace norma
