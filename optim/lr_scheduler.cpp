#include "norma/optim/lr_scheduler.h"

#include "norma/core/factory.h"

#include <cmath>

namespace norma::optim {

LRScheduler::LRScheduler(Optimizer& optimizer, Schedule schedule)
    : optimizer_(optimizer), schedule_(std::move(schedule)) {
  check(schedule_ != nullptr, "lr_scheduler", "the schedule must be a function; got none");
  base_lrs_ = get_last_lr();
  apply();
}

void LRScheduler::step() {
  ++step_;
  apply();
}

void LRScheduler::apply() {
  std::vector<ParamGroup>& groups = optimizer_.param_groups();
  check(groups.size() == base_lrs_.size(), "lr_scheduler",
        "groups must be added before the scheduler is made; got {} groups where there were {}",
        groups.size(), base_lrs_.size());
  const double factor = schedule_(step_);
  check(factor >= 0 && std::isfinite(factor), "lr_scheduler",
        "the schedule must give finite factors of at least 0; got {} at step {}", factor, step_);
  for (std::size_t g = 0; g < groups.size(); ++g) groups[g].lr = base_lrs_[g] * factor;
}

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> rates;
  for (const ParamGroup& group : optimizer_.param_groups()) rates.push_back(group.lr.value());
  return rates;
}

StateDict LRScheduler::state_dict() const {
  return {{"step", tensor(step_)},
          {"base_lrs", from_values(base_lrs_, {static_cast<std::int64_t>(base_lrs_.size())})}};
}

void LRScheduler::load_state_dict(const StateDict& state) {
  constexpr const char* where = "lr_scheduler.load_state_dict";
  detail::check_same_layout(state, state_dict(), where);
  const auto step = state.at("step").item<std::int64_t>();
  check(step >= 0, where, "the step must be at least 0; got {}", step);
  base_lrs_ = state.at("base_lrs").to_vector<double>();
  step_ = step;
  apply();
}

}  // namespace norma::optim
