// Schedules: the learning rate as a pure function of the step.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace norma::optim {

/// The factor on the base learning rate for the update number `step`, counted from 0.
using Schedule = std::function<double(std::int64_t step)>;

struct ScheduleOptions {
  std::int64_t warmup_steps = 0;  ///< linear rise: factors 1/w, 2/w, …, 1
  std::int64_t total_steps = 0;   ///< updates of the whole run; needed by linear, cosine and wsd
  double min_ratio = 0.0;         ///< factor at and after total_steps
  std::int64_t decay_steps = 0;   ///< wsd: length of the last phase
};

/// The schedules, with warm-up w, total T, minimum m, and progress p = (step - w) / (T - w):
///
///     constant      1
///     linear        1 - (1 - m) p
///     cosine        m + (1 - m) (1 + cos πp) / 2
///     inverse_sqrt  √(w / (step + 1)), w at least 1; no end
///     wsd           1, then 1 - (1 - m) q with q from 0 to 1 over the last decay_steps
///     (warmup-stable-decay)
///
/// No update has factor 0 unless it is past the end: the first one takes 1/w, the last one what is
/// just before m. Throws ValueError for negative steps, min_ratio outside of [0, 1], phases that do
/// not fit into total_steps. Sources: Loshchilov, Hutter: SGDR (2017), for cosine; Vaswani et al.:
/// Attention Is All You Need (2017), for inverse_sqrt, here with the peak at 1; Hu et al.: MiniCPM
/// (2024), for wsd.
Schedule constant_schedule(const ScheduleOptions& options = {});
Schedule linear_schedule(const ScheduleOptions& options);
Schedule cosine_schedule(const ScheduleOptions& options);
Schedule inverse_sqrt_schedule(const ScheduleOptions& options);
Schedule wsd_schedule(const ScheduleOptions& options);

/// The schedule with this name: constant, linear, cosine, inverse_sqrt or wsd; throws ValueError
/// for another.
Schedule make_schedule(std::string_view name, const ScheduleOptions& options);

}  // namespace norma::optim
