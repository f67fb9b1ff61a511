// Allocator: memory of one device, cached and counted.
#pragma once

#include "norma/core/device.h"

#include <cstddef>
#include <cstdint>

namespace norma {

/// What an allocator did so far. All in bytes but the counts.
struct MemoryStats {
  std::int64_t current = 0;      ///< handed out now
  std::int64_t peak = 0;         ///< largest `current` since the last reset_peak_memory_stats
  std::int64_t reserved = 0;     ///< taken from the system: handed out plus cached
  std::int64_t allocations = 0;  ///< calls of allocate
  std::int64_t cache_hits = 0;   ///< of these, served from the cache
};

/// Source of device memory. Implementations are thread-safe and live until the process ends, so
/// that tensors in static storage can be destroyed in any order.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// At least `bytes` bytes, 64-byte aligned; nullptr for 0 bytes. Throws OutOfMemoryError.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Takes back what `allocate(bytes)` gave.
  virtual void deallocate(void* pointer, std::size_t bytes) noexcept = 0;
  virtual MemoryStats stats() const = 0;
  virtual void reset_peak() = 0;
  /// Gives cached, unused memory back to the system.
  virtual void empty_cache() = 0;
};

/// The allocator of `device`; throws DeviceError where the build or machine has none.
Allocator& allocator(const Device& device);
/// Registers the allocator of a device type (a backend does this when it starts).
void set_allocator(DeviceType type, Allocator* allocator);

/// Statistics of `device`'s allocator.
MemoryStats memory_stats(const Device& device = cpu);
void reset_peak_memory_stats(const Device& device = cpu);
void empty_cache(const Device& device = cpu);

}  // namespace norma
