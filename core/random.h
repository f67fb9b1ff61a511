// Random numbers: counter-based (core/philox.h), one seeded generator per device.
#pragma once

#include "norma/core/device.h"
#include "norma/core/philox.h"

#include <cstdint>

namespace norma {

/// The stream of random numbers of one device.
class Generator {
 public:
  explicit Generator(std::uint64_t seed = 0) : state_{seed, 0} {}
  /// Restarts the stream from `seed`.
  void manual_seed(std::uint64_t seed) { state_ = {seed, 0}; }
  std::uint64_t seed() const { return state_.seed; }
  /// Takes `words` 32-bit words (rounded up to whole blocks) from the stream.
  PhiloxState reserve(std::int64_t words) {
    const PhiloxState taken = state_;
    state_.offset += static_cast<std::uint64_t>((words + 3) / 4);
    return taken;
  }
  /// Save and restore: the stream goes on as if nothing happened.
  PhiloxState get_state() const { return state_; }
  void set_state(const PhiloxState& state) { state_ = state; }

 private:
  PhiloxState state_;
};

/// The generator that operations on `device` draw from. Not synchronised: one thread per device
/// draws.
Generator& default_generator(const Device& device = cpu);
/// Seeds the generators of all devices. As torch.manual_seed.
void manual_seed(std::uint64_t seed);

}  // namespace norma
