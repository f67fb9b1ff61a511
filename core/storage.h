// Storage: a block of device memory that tensors share, with the version counter of its contents.
#pragma once

#include "norma/core/allocator.h"

#include <atomic>
#include <memory>

namespace norma {

/// Owns `bytes` bytes on `device`. Views of one tensor share one Storage and so one version.
class Storage {
 public:
  Storage(std::size_t bytes, const Device& device)
      : data_(allocator(device).allocate(bytes)), bytes_(bytes), device_(device) {}
  ~Storage() { allocator(device_).deallocate(data_, bytes_); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  const Device& device() const { return device_; }

  /// Number of in-place changes so far. The tape compares it to find changed saved values.
  std::uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

  /// Views alive, by whether they are part of a graph. An in-place change recorded past either
  /// would leave their history wrong.
  std::atomic<int> graph_views{0};
  std::atomic<int> plain_views{0};

 private:
  void* data_;
  std::size_t bytes_;
  Device device_;
  std::atomic<std::uint64_t> version_{0};
};

}  // namespace norma
