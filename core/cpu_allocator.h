// CpuAllocator: the caching allocator of host memory.
#pragma once

#include "norma/core/allocator.h"

#include <array>
#include <mutex>
#include <unordered_map>

namespace norma {

/// Keeps every block it ever took and hands it out again, because fresh pages cost far more than
/// most operations do: a page fault is about 2 us for 4 KiB, so that touching a new 4 MiB buffer
/// takes 20 times as long as y = a x + b on it.
///
/// Sizes are rounded up to classes, four to each doubling (64, 128, 192, 256, 320, 384, 448, 512,
/// 640, … bytes), so that at most a quarter is lost; each class has one list of free blocks. Blocks
/// of 2 MiB and more are mapped at 2 MiB boundaries and ask for huge pages, and may serve requests
/// of up to half their size: batches of varying length would otherwise fill one list per length.
/// Nothing goes back to the system before empty_cache(). The process's allocator has malloc do
/// likewise: what matrix product libraries take from it would cost as many page faults.
///
/// All statistics count rounded sizes.
class CpuAllocator final : public Allocator {
 public:
  /// With `cached` false every request goes to the system and comes back from it, for tools that
  /// watch memory (AddressSanitizer, Valgrind): in a cache they would see neither a use after free
  /// nor a leak.
  explicit CpuAllocator(bool cached) : cached_(cached) {}
  /// Returns the cached blocks. Blocks still handed out stay with their owners and leak.
  ~CpuAllocator() override { empty_cache(); }

  void* allocate(std::size_t bytes) override;
  void deallocate(void* pointer, std::size_t bytes) noexcept override;
  MemoryStats stats() const override;
  void reset_peak() override;
  void empty_cache() override;

  /// The process's allocator; never destroyed. Uncached where the environment sets
  /// NORMA_NO_CACHE=1, and under AddressSanitizer unless it sets NORMA_NO_CACHE=0.
  static CpuAllocator& instance();

 private:
  struct FreeBlock {
    FreeBlock* next;
  };
  static constexpr std::size_t class_count = 256;

  void* take_cached(std::size_t size_class, std::size_t& block_bytes);
  void* take_from_system(std::size_t bytes);
  void release_cached() noexcept;
  [[noreturn]] void throw_out_of_memory(std::size_t bytes) const;

  const bool cached_;
  mutable std::mutex mutex_;
  MemoryStats stats_;
  std::array<FreeBlock*, class_count> free_{};
  /// Class of every mapped block: it may be larger than the class of the request it serves.
  std::unordered_map<void*, std::size_t> mapped_;
};

}  // namespace norma
