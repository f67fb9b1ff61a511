#include "norma/core/allocator.h"

#include "norma/core/cpu_allocator.h"

#include <array>
#include <atomic>

namespace norma {

namespace {
std::array<std::atomic<Allocator*>, device_type_count>& registry() {
  static std::array<std::atomic<Allocator*>, device_type_count> allocators{};
  return allocators;
}
}  // namespace

Allocator& allocator(const Device& device) {
  Allocator* registered =
      registry()[static_cast<std::size_t>(device.type)].load(std::memory_order_acquire);
  if (registered != nullptr) return *registered;
  check<DeviceError>(device.is_cpu(), "allocator",
                     "the device must have a backend; got {}, and this program was built without "
                     "one; use cpu, or configure norma with -DNORMA_CUDA=ON (or EMULATE)",
                     device);
  return CpuAllocator::instance();
}

void set_allocator(DeviceType type, Allocator* replacement) {
  registry()[static_cast<std::size_t>(type)].store(replacement, std::memory_order_release);
}

MemoryStats memory_stats(const Device& device) { return allocator(device).stats(); }
void reset_peak_memory_stats(const Device& device) { allocator(device).reset_peak(); }
void empty_cache(const Device& device) { allocator(device).empty_cache(); }

}  // namespace norma
