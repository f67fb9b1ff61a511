#include "norma/core/allocator.h"

#include "norma/core/cpu_allocator.h"
#include "norma/core/device_start.h"

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
  std::atomic<Allocator*>& registered = registry()[static_cast<std::size_t>(device.type)];
  if (Allocator* found = registered.load(std::memory_order_acquire); found && device.index == 0)
    return *found;
  if (device.is_cpu()) return CpuAllocator::instance();
  detail::require_device("allocator", device);
  return *registered.load(std::memory_order_acquire);
}

void set_allocator(DeviceType type, Allocator* replacement) {
  registry()[static_cast<std::size_t>(type)].store(replacement, std::memory_order_release);
}

MemoryStats memory_stats(const Device& device) { return allocator(device).stats(); }
void reset_peak_memory_stats(const Device& device) { allocator(device).reset_peak(); }
void empty_cache(const Device& device) { allocator(device).empty_cache(); }

}  // namespace norma
