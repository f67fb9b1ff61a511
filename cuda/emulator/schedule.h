// Schedule: the order in which the emulator runs blocks and threads.
//
// A correct kernel gives the same result in every order; a missing barrier shows as a difference
// between two. No single order shows every bug: which one does depends on who should have waited.
#pragma once

#include <cstdint>
#include <vector>

namespace norma::emulator {

enum class Order : std::uint8_t {
  forward,  ///< threads by number, each until it waits
  reverse,  ///< the same backwards
  greedy,   ///< one warp as far as it can go before the next: shows a write that overtakes a read
  random,   ///< warps, lanes and greediness drawn anew after every barrier, blocks shuffled
};

struct Schedule {
  Order order = Order::random;
  std::uint64_t seed = 0;
};

/// The schedule of launches from this host thread; at first random, with the seed of the
/// environment's NORMA_EMULATOR_SEED (0).
Schedule current_schedule();

/// Changes it for a scope.
class ScheduleGuard {
 public:
  explicit ScheduleGuard(const Schedule& schedule);
  ~ScheduleGuard();
  ScheduleGuard(const ScheduleGuard&) = delete;
  ScheduleGuard& operator=(const ScheduleGuard&) = delete;

 private:
  Schedule previous_;
};

/// What a test should run a kernel under: each fixed order, and random ones with `seeds` seeds.
std::vector<Schedule> all_schedules(int seeds = 4);

}  // namespace norma::emulator
