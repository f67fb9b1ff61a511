// DeviceAllocator: memory of the CUDA device.
#pragma once

#include "norma/core/allocator.h"

#include <mutex>

namespace norma::cuda_kernels {

/// Hands every request to the driver: exact blocks, which the emulator can guard. (A cache belongs
/// between, once training on a GPU is measured.)
class DeviceAllocator final : public Allocator {
 public:
  void* allocate(std::size_t bytes) override;
  void deallocate(void* pointer, std::size_t bytes) noexcept override;
  MemoryStats stats() const override;
  void reset_peak() override;
  void empty_cache() override {}

 private:
  mutable std::mutex mutex_;
  MemoryStats stats_;
};

}  // namespace norma::cuda_kernels
