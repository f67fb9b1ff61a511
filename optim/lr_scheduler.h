// LRScheduler: sets the learning rate of an optimizer's groups from a schedule.
#pragma once

#include "norma/optim/lr_schedule.h"
#include "norma/optim/optimizer.h"

namespace norma::optim {

/// Each group's learning rate is its base, which is what the group has when the scheduler is made,
/// times the schedule's factor.
///
///     LRScheduler scheduler(optimizer, cosine_schedule({.warmup_steps = 9, .total_steps = 99}));
///     for (…) {
///       optimizer.step();
///       scheduler.step();
///     }
class LRScheduler {
 public:
  /// Sets the rates of update 0. `optimizer` must outlive the scheduler.
  LRScheduler(Optimizer& optimizer, Schedule schedule);

  /// Moves to the next update; call it after optimizer.step().
  void step();
  /// The update that the rates are set for, from 0.
  std::int64_t current_step() const { return step_; }
  /// The rates in force, by group. As get_last_lr of PyTorch.
  std::vector<double> get_last_lr() const;

  /// The step and the base rates (not the schedule).
  StateDict state_dict() const;
  /// Continues from there, and sets the rates; in any order with the optimizer's load_state_dict.
  /// Throws ValueError where the groups differ.
  void load_state_dict(const StateDict& state);

 private:
  void apply();

  Optimizer& optimizer_;
  Schedule schedule_;
  std::vector<double> base_lrs_;
  std::int64_t step_ = 0;
};

}  // namespace norma::optim
