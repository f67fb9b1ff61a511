#include "norma/cuda/runtime/allocator.h"

#include "norma/cuda/runtime/driver.h"

#include <algorithm>

namespace norma::cuda_kernels {

void* DeviceAllocator::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* const pointer = driver::allocate(bytes);
  const std::lock_guard lock(mutex_);
  check<OutOfMemoryError>(pointer != nullptr, "allocate",
                          "cuda:0 must have the memory; got a request for {} bytes with {} in use; "
                          "use smaller batches or sequences, or evaluate under no_grad",
                          bytes, stats_.current);
  ++stats_.allocations;
  stats_.current += static_cast<std::int64_t>(bytes);
  stats_.reserved = stats_.current;
  stats_.peak = std::max(stats_.peak, stats_.current);
  return pointer;
}

void DeviceAllocator::deallocate(void* pointer, std::size_t bytes) noexcept {
  if (pointer == nullptr) return;
  driver::release(pointer);
  const std::lock_guard lock(mutex_);
  stats_.current -= static_cast<std::int64_t>(bytes);
  stats_.reserved = stats_.current;
}

MemoryStats DeviceAllocator::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void DeviceAllocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  stats_.peak = stats_.current;
}

}  // namespace norma::cuda_kernels
