// What the backend needs of the CUDA runtime. Two files implement it: cuda_driver.cpp by CUDA,
// emulated_driver.cpp by the emulator, whose device memory is guarded host memory.
#pragma once

#include <cstddef>
#include <string>

namespace norma::cuda_kernels::driver {

/// Empty where a device can be used, else why not: "no CUDA driver was found". Never throws.
std::string unavailable();
/// Whether slots without a CUDA kernel are served by the CPU's (the emulator only: its device
/// memory is the host's).
bool serves_reference_kernels();

/// Null where the device has no more.
void* allocate(std::size_t bytes);
void release(void* pointer) noexcept;
/// Return when the bytes have arrived.
void copy_to_device(void* to, const void* from, std::size_t bytes);
void copy_to_host(void* to, const void* from, std::size_t bytes);

}  // namespace norma::cuda_kernels::driver
