#include "norma/optim/lr_schedule.h"

#include "norma/core/error.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace norma::optim {

namespace {

void check_options(const ScheduleOptions& o, bool needs_total) {
  check(o.warmup_steps >= 0, "schedule", "warmup_steps must be at least 0; got {}", o.warmup_steps);
  check(o.min_ratio >= 0 && o.min_ratio <= 1, "schedule", "min_ratio must be in [0, 1]; got {}",
        o.min_ratio);
  check(!needs_total || o.total_steps > o.warmup_steps, "schedule",
        "total_steps must exceed the warm-up of {} steps; got {}", o.warmup_steps, o.total_steps);
}

/// The rise of the warm-up, or 1 after it.
double warmup(const ScheduleOptions& o, std::int64_t step) {
  return step < o.warmup_steps ? static_cast<double>(step + 1) / static_cast<double>(o.warmup_steps)
                               : 1.0;
}

/// 0 before `begin`, 1 from `end` on, linear between.
double progress(std::int64_t step, std::int64_t begin, std::int64_t end) {
  return std::clamp(static_cast<double>(step - begin) / static_cast<double>(end - begin), 0.0, 1.0);
}

}  // namespace

Schedule constant_schedule(const ScheduleOptions& o) {
  check_options(o, false);
  return [o](std::int64_t step) { return warmup(o, step); };
}

Schedule linear_schedule(const ScheduleOptions& o) {
  check_options(o, true);
  return [o](std::int64_t step) {
    return warmup(o, step) *
           (1.0 - (1.0 - o.min_ratio) * progress(step, o.warmup_steps, o.total_steps));
  };
}

Schedule cosine_schedule(const ScheduleOptions& o) {
  check_options(o, true);
  return [o](std::int64_t step) {
    const double p = progress(step, o.warmup_steps, o.total_steps);
    return warmup(o, step) *
           (o.min_ratio + (1.0 - o.min_ratio) * 0.5 * (1.0 + std::cos(std::numbers::pi * p)));
  };
}

Schedule inverse_sqrt_schedule(const ScheduleOptions& o) {
  check_options(o, false);
  return [o](std::int64_t step) {
    const auto peak = static_cast<double>(std::max<std::int64_t>(o.warmup_steps, 1));
    const double position = std::max(static_cast<double>(step + 1), peak);
    return warmup(o, step) * std::sqrt(peak / position);
  };
}

Schedule wsd_schedule(const ScheduleOptions& o) {
  check_options(o, true);
  check(o.decay_steps > 0 && o.warmup_steps + o.decay_steps <= o.total_steps, "schedule",
        "decay_steps must be positive and fit with the warm-up of {} into {} steps; got {}",
        o.warmup_steps, o.total_steps, o.decay_steps);
  return [o](std::int64_t step) {
    const double q = progress(step, o.total_steps - o.decay_steps, o.total_steps);
    return warmup(o, step) * (1.0 - (1.0 - o.min_ratio) * q);
  };
}

Schedule make_schedule(std::string_view name, const ScheduleOptions& options) {
  if (name == "constant") return constant_schedule(options);
  if (name == "linear") return linear_schedule(options);
  if (name == "cosine") return cosine_schedule(options);
  if (name == "inverse_sqrt") return inverse_sqrt_schedule(options);
  check(name == "wsd", "schedule",
        "must be constant, linear, cosine, inverse_sqrt or wsd; got \"{}\"", name);
  return wsd_schedule(options);
}

}  // namespace norma::optim
