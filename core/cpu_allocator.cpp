#include "norma/core/cpu_allocator.h"

#include "norma/core/logging.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace norma {

namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;
/// A cached block this many classes above the request may serve it: 3 classes are less than a
/// factor of 2.
constexpr std::size_t class_slack = 3;

// Classes in units of 64 bytes: 1, 2, 3, 4, then quarters of each doubling: 5, 6, 7, 8, 10, 12, 14,
// 16, 20, ….
std::size_t size_class(std::size_t bytes) {
  const std::size_t last = (bytes - 1) / alignment;
  if (last < 4) return last;
  const std::size_t exponent = static_cast<std::size_t>(std::bit_width(last)) - 1;
  return 4 * (exponent - 1) + ((last >> (exponent - 2)) & 3);
}
std::size_t class_bytes(std::size_t index) {
  if (index < 4) return (index + 1) * alignment;
  return (5 + index % 4) * alignment << (index / 4 - 1);
}

/// Null where the system refuses.
void* map_huge(std::size_t bytes) {
  // Map one huge page more than needed and cut both ends, so that the rest starts at a boundary.
  const std::size_t length = bytes + huge_page;
  void* mapping = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(mapping);
  const std::size_t head =
      (huge_page - reinterpret_cast<std::uintptr_t>(begin) % huge_page) % huge_page;
  char* const block = begin + head;
  if (head > 0) munmap(begin, head);
  if (const std::size_t tail = length - head - bytes; tail > 0) munmap(block + bytes, tail);
  madvise(block, bytes, MADV_HUGEPAGE);  // a hint; small pages work, too
  return block;
}

std::size_t physical_memory() {
  static const std::size_t bytes = [] {
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(size)
                                 : std::size_t{1} << 46;
  }();
  return bytes;
}

std::string readable(double bytes) {
  static constexpr std::array<const char*, 5> units = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024.0 && unit + 1 < units.size()) {
    bytes /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.2f} {}", bytes, units[unit]);
}

/// The matrix product libraries take their buffers from malloc anew with every call, and malloc,
/// left alone, hands large ones back to the system each time.
void let_malloc_keep_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

bool use_cache() {
#ifdef __SANITIZE_ADDRESS__
  bool cached = false;
#else
  bool cached = true;
#endif
  if (const char* text = std::getenv("NORMA_NO_CACHE"); text != nullptr && *text != '\0')
    cached = std::string_view(text) == "0";
  return cached;
}

}  // namespace

CpuAllocator& CpuAllocator::instance() {
  // Never destroyed: tensors in static storage may outlive every other static object.
  static CpuAllocator& immortal = []() -> CpuAllocator& {
    const bool cached = use_cache();
    if (cached) let_malloc_keep_memory();
    return *new CpuAllocator(cached);
  }();
  return immortal;
}

void* CpuAllocator::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  // No machine holds this; also keeps the rounding below from overflowing, and an overcommitting
  // kernel from promising what it must take back by killing the process.
  if (bytes > physical_memory()) throw_out_of_memory(bytes);
  const std::size_t index = size_class(bytes);
  std::size_t block_bytes = class_bytes(index);
  ++stats_.allocations;
  void* block = cached_ ? take_cached(index, block_bytes) : nullptr;
  if (block != nullptr) {
    ++stats_.cache_hits;
  } else {
    block = take_from_system(block_bytes);
    if (block == nullptr) {
      logger().warn("cpu memory is short: giving {} of cache back",
                    readable(static_cast<double>(stats_.reserved - stats_.current)));
      release_cached();
      block = take_from_system(block_bytes);
    }
    if (block == nullptr) throw_out_of_memory(bytes);
    if (cached_ && block_bytes >= huge_page) mapped_.emplace(block, index);
    stats_.reserved += static_cast<std::int64_t>(block_bytes);
  }
  stats_.current += static_cast<std::int64_t>(block_bytes);
  stats_.peak = std::max(stats_.peak, stats_.current);
  return block;
}

void CpuAllocator::deallocate(void* pointer, std::size_t bytes) noexcept {
  if (pointer == nullptr) return;
  const std::lock_guard lock(mutex_);
  std::size_t index = size_class(bytes);
  if (cached_ && class_bytes(index) >= huge_page) index = mapped_.find(pointer)->second;
  stats_.current -= static_cast<std::int64_t>(class_bytes(index));
  if (!cached_) {
    stats_.reserved -= static_cast<std::int64_t>(class_bytes(index));
    std::free(pointer);
    return;
  }
  free_[index] = new (pointer) FreeBlock{free_[index]};
}

void* CpuAllocator::take_cached(std::size_t index, std::size_t& block_bytes) {
  const std::size_t slack = block_bytes >= huge_page ? class_slack : 0;
  for (std::size_t candidate = index; candidate <= index + slack; ++candidate) {
    if (FreeBlock* block = free_[candidate]; block != nullptr) {
      free_[candidate] = block->next;
      block_bytes = class_bytes(candidate);
      return block;
    }
  }
  return nullptr;
}

void* CpuAllocator::take_from_system(std::size_t bytes) {
  if (cached_ && bytes >= huge_page) return map_huge(bytes);
  return std::aligned_alloc(alignment, bytes);
}

void CpuAllocator::release_cached() noexcept {
  for (std::size_t index = 0; index < class_count; ++index) {
    const std::size_t bytes = class_bytes(index);
    while (FreeBlock* block = free_[index]) {
      free_[index] = block->next;
      stats_.reserved -= static_cast<std::int64_t>(bytes);
      if (bytes >= huge_page) {
        mapped_.erase(block);
        munmap(block, bytes);
      } else {
        std::free(block);
      }
    }
  }
}

void CpuAllocator::throw_out_of_memory(std::size_t bytes) const {
  throw OutOfMemoryError(
      "allocate",
      fmt::format(
          "the cpu must have the memory; got a request for {} with {} in use and {} cached on a "
          "machine of {}; use smaller batches or sequences, evaluate under no_grad, or "
          "drop tensors that keep a graph alive (a loss that is summed up without .item())",
          readable(static_cast<double>(bytes)), readable(static_cast<double>(stats_.current)),
          readable(static_cast<double>(stats_.reserved - stats_.current)),
          readable(static_cast<double>(physical_memory()))));
}

MemoryStats CpuAllocator::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void CpuAllocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  stats_.peak = stats_.current;
}

void CpuAllocator::empty_cache() {
  const std::lock_guard lock(mutex_);
  release_cached();
#ifdef __GLIBC__
  if (cached_) malloc_trim(0);
#endif
}

}  // namespace norma
