// cuda(0) in tests of its kernels.
#pragma once

#include "norma/cuda/runtime/backend.h"
#include "support/catch.h"

#include <string>

namespace norma::test {

/// Whether cuda(0) can be used: always in the emulator. A build for GPUs is "skipped", to CTest, on
/// a machine without one. Calling start() is what links the backend into a build without CUDA.
inline bool has_device() {
  static const std::string reason = cuda_kernels::start();
  if (!reason.empty()) WARN("skipped: CUDA cannot be used: " + reason);
  return reason.empty();
}

/// cuda(0) as it is on a GPU, while this lives: in the emulator the CPU's kernels stand in for
/// missing ones otherwise.
class OwnKernelsGuard {
 public:
  OwnKernelsGuard() : before_(&backend(cuda(0))) {
    cuda_kernels::add_kernels(own_);
    set_backend(DeviceType::cuda, &own_);
  }
  ~OwnKernelsGuard() { set_backend(DeviceType::cuda, before_); }
  OwnKernelsGuard(const OwnKernelsGuard&) = delete;
  OwnKernelsGuard& operator=(const OwnKernelsGuard&) = delete;

 private:
  const Backend* before_;
  Backend own_;
};

}  // namespace norma::test
