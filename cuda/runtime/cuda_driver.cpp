#include "norma/core/error.h"
#include "norma/core/logging.h"
#include "norma/cuda/runtime/driver.h"

#include <cuda_runtime_api.h>

namespace norma::cuda_kernels::driver {

namespace {
void succeed(cudaError_t error, const char* what) {
  check<DeviceError>(error == cudaSuccess, what, "CUDA must succeed; got: {}",
                     cudaGetErrorString(error));
}
}  // namespace

std::string unavailable() {
  int count = 0;  // an old or missing driver leaves it as it is
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice || count == 0)
    return "CUDA found no GPU, or no driver for it";
  if (error != cudaSuccess) return cudaGetErrorString(error);
  return {};
}

bool serves_reference_kernels() { return false; }

void* allocate(std::size_t bytes) {
  void* pointer = nullptr;
  if (cudaMalloc(&pointer, bytes) == cudaSuccess) return pointer;
  cudaGetLastError();  // the failure is reported by the caller
  return nullptr;
}

void release(void* pointer) noexcept {
  if (cudaFree(pointer) != cudaSuccess) cudaGetLastError();  // at exit the driver may be gone
}

void copy_to_device(void* to, const void* from, std::size_t bytes) {
  succeed(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copy_from_cpu");
}
void copy_to_host(void* to, const void* from, std::size_t bytes) {
  succeed(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copy_to_cpu");
}

}  // namespace norma::cuda_kernels::driver
