#include "norma/cuda/emulator/schedule.h"

#include <cstdlib>

namespace norma::emulator {

namespace {
Schedule& schedule() {
  static const Schedule initial = [] {
    const char* const text = std::getenv("NORMA_EMULATOR_SEED");
    return Schedule{Order::random, text != nullptr ? std::strtoull(text, nullptr, 10) : 0};
  }();
  thread_local Schedule current = initial;
  return current;
}
}  // namespace

Schedule current_schedule() { return schedule(); }

ScheduleGuard::ScheduleGuard(const Schedule& next) : previous_(schedule()) { schedule() = next; }
ScheduleGuard::~ScheduleGuard() { schedule() = previous_; }

std::vector<Schedule> all_schedules(int seeds) {
  std::vector<Schedule> all = {{Order::forward}, {Order::reverse}, {Order::greedy}};
  for (int seed = 1; seed <= seeds; ++seed)
    all.push_back({Order::random, static_cast<std::uint64_t>(seed)});
  return all;
}

}  // namespace norma::emulator
