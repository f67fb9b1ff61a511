// Guarded memory: what the emulator gives as device and as shared memory.
//
// Blocks are of the exact size asked for, between two canaries, and full of a bit pattern that is
// NaN in every floating-point type (and negative as an integer): reading what nobody wrote, or
// past an end, poisons the result. A write past an end is found by `guards_intact`, and at once
// under AddressSanitizer, which also sees reads.
#pragma once

#include "norma/core/error.h"

#include <cstddef>
#include <string>

namespace norma::emulator {

/// A kernel broke a rule of CUDA. The name in the brackets is the kernel's.
struct KernelError : Error {
  using Error::Error;
};

/// `bytes` bytes between canaries, 64-byte aligned. Throws OutOfMemoryError.
class GuardedBlock {
 public:
  explicit GuardedBlock(std::size_t bytes);
  ~GuardedBlock();
  GuardedBlock(GuardedBlock&& other) noexcept;
  GuardedBlock& operator=(GuardedBlock&&) = delete;
  GuardedBlock(const GuardedBlock&) = delete;
  GuardedBlock& operator=(const GuardedBlock&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// Fills it with NaN.
  void poison() const;
  /// "before the start" or "past the end" where something wrote there, else null.
  const char* damage() const;
  /// Writes the canaries anew.
  void repair() const;

 private:
  char* data_;
  std::size_t bytes_;
};

/// Device memory. Live blocks are looked at after every launch.
void* allocate_memory(std::size_t bytes);
/// Overwritten canaries, or a pointer to nothing that was allocated, are kept for the next
/// check_memory: the destructor of a tensor cannot throw.
void release_memory(void* pointer) noexcept;
/// Throws KernelError in the name of `kernel` where a live block's canaries were overwritten, and
/// DeviceError, once, for what release_memory found since the last call.
void check_memory(const std::string& kernel);

}  // namespace norma::emulator
