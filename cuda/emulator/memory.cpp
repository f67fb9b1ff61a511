#include "norma/cuda/emulator/memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define NORMA_NO_ASAN __attribute__((no_sanitize_address))
#else
#define NORMA_NO_ASAN
#endif

namespace norma::emulator {

namespace {

constexpr std::size_t guard_bytes = 64;

// 0xfff5 again and again: NaN as float16, bfloat16, float32 and float64.
constexpr unsigned char pattern_byte(std::size_t i) { return i % 2 == 0 ? 0xf5 : 0xff; }

NORMA_NO_ASAN void write_pattern(char* begin, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) begin[i] = static_cast<char>(pattern_byte(i));
}
NORMA_NO_ASAN bool has_pattern(const char* begin, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (static_cast<unsigned char>(begin[i]) != pattern_byte(i)) return false;
  return true;
}

void poison_guards([[maybe_unused]] const char* data, [[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __asan_poison_memory_region(data - guard_bytes, guard_bytes);
  __asan_poison_memory_region(data + bytes, guard_bytes);
#endif
}
void unpoison_guards([[maybe_unused]] const char* data, [[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(data - guard_bytes, guard_bytes);
  __asan_unpoison_memory_region(data + bytes, guard_bytes);
#endif
}

struct Registry {
  std::mutex mutex;
  std::map<void*, GuardedBlock> blocks;
  std::string found_at_release;
};
Registry& registry() {
  // Never destroyed: tensors in static storage give their memory back after main.
  static Registry& immortal = *new Registry;
  return immortal;
}

}  // namespace

GuardedBlock::GuardedBlock(std::size_t bytes) : bytes_(bytes) {
  const std::size_t total = (bytes + 2 * guard_bytes + 63) / 64 * 64;
  char* const base = total > bytes ? static_cast<char*>(std::aligned_alloc(64, total)) : nullptr;
  check<OutOfMemoryError>(base != nullptr, "emulator",
                          "the emulated device must have the memory; got a request for {} bytes",
                          bytes);
  data_ = base + guard_bytes;
  poison();
  repair();
  poison_guards(data_, bytes_);
}

GuardedBlock::~GuardedBlock() {
  if (data_ == nullptr) return;
  unpoison_guards(data_, bytes_);
  std::free(data_ - guard_bytes);
}

GuardedBlock::GuardedBlock(GuardedBlock&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

void GuardedBlock::repair() const {
  write_pattern(data_ - guard_bytes, guard_bytes);
  write_pattern(data_ + bytes_, guard_bytes);
}

void GuardedBlock::poison() const { write_pattern(data_, bytes_); }

const char* GuardedBlock::damage() const {
  if (!has_pattern(data_ - guard_bytes, guard_bytes)) return "before the start";
  if (!has_pattern(data_ + bytes_, guard_bytes)) return "past the end";
  return nullptr;
}

void* allocate_memory(std::size_t bytes) {
  GuardedBlock block(bytes);
  void* const data = block.data();
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.blocks.emplace(data, std::move(block));
  return data;
}

void release_memory(void* pointer) noexcept {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.blocks.find(pointer);
  if (found == all.blocks.end()) {
    all.found_at_release =
        "memory to release must come from the emulated device; got another pointer";
    return;
  }
  if (const char* const damage = found->second.damage())
    all.found_at_release = fmt::format(
        "nobody may write outside of a block of device memory; got a write {} of one of {} bytes, "
        "found at its release; AddressSanitizer names the line (preset asan)",
        damage, found->second.bytes());
  all.blocks.erase(found);
}

void check_memory(const std::string& kernel) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const std::string released = std::exchange(all.found_at_release, {});
  check<DeviceError>(released.empty(), "emulator", "{}", released);
  for (const auto& [data, block] : all.blocks) {
    const char* const damage = block.damage();
    if (damage == nullptr) continue;
    block.repair();  // reported once, under the right name
    throw KernelError(kernel, fmt::format("must stay inside of its arrays; got a write {} of a "
                                          "block of {} bytes of device memory; AddressSanitizer "
                                          "names the line (preset asan)",
                                          damage, block.bytes()));
  }
}

}  // namespace norma::emulator
