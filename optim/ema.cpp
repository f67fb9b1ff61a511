#include "norma/optim/ema.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/required_ops.h"
#include "norma/core/storage.h"
#include "norma/ops/backend.h"

#include <algorithm>

namespace norma::optim {

namespace {

DType average_dtype(const Tensor& parameter) {
  return parameter.dtype() == float64 ? float64 : float32;
}

/// Overwrites the values of `target`, which may be a leaf that requires grad.
void overwrite(const Tensor& target, const Tensor& source) {
  norma::detail::copy(target, source);
  target.storage()->bump_version();
}

}  // namespace

EMA::EMA(TensorList params, const EMAOptions& options)
    : params_(std::move(params)), options_(options) {
  check(options_.decay >= 0 && options_.decay < 1, "ema", "decay must be in [0, 1); got {}",
        options_.decay);
  check(!params_.empty(), "ema", "there must be parameters; got none");
  for (const Tensor& parameter : params_) {
    check(parameter.defined(), "ema", "parameters must be defined; got an undefined one");
    check<DTypeError>(parameter.is_floating_point(), "ema",
                      "parameters must be floating point; got {}", parameter.dtype());
    check(parameter.is_contiguous(), "ema", "parameters must be contiguous; got strides {}",
          parameter.strides());
    averages_.push_back(detail::copy_of(parameter, average_dtype(parameter), parameter.device()));
  }
}

void EMA::check_not_applied(const char* operation) const {
  check(!applied_, operation,
        "the parameters must hold their own values; got a call while the averages are applied; end "
        "the "
        "scope of apply() first");
}

void EMA::update() {
  check_not_applied("ema.update");
  const NoGradGuard no_grad;
  ++updates_;
  const auto n = static_cast<double>(updates_);
  const double decay =
      options_.warmup ? std::min(options_.decay, (1.0 + n) / (10.0 + n)) : options_.decay;
  // One call for each device; Module::to may have moved or converted the parameters since.
  std::vector<std::pair<TensorList, TensorList>> by_device;
  for (std::size_t i = 0; i < params_.size(); ++i) {
    const Tensor& parameter = params_[i];
    Tensor& average = averages_[i];
    if (average.dtype() != average_dtype(parameter) || average.device() != parameter.device())
      average = detail::copy_of(average, average_dtype(parameter), parameter.device());
    auto lists = std::find_if(by_device.begin(), by_device.end(), [&](const auto& pair) {
      return pair.first[0].device() == parameter.device();
    });
    if (lists == by_device.end()) lists = by_device.emplace(lists);
    lists->first.push_back(average);
    lists->second.push_back(parameter);
  }
  for (const auto& [averages, params] : by_device) {
    backend(params[0]).ema(averages, params, decay);
    for (const Tensor& average : averages) average.storage()->bump_version();
  }
}

EMA::Applied EMA::apply() { return Applied(*this); }

void EMA::copy_to_params() const {
  check_not_applied("ema.copy_to_params");
  const NoGradGuard no_grad;
  for (std::size_t i = 0; i < params_.size(); ++i) overwrite(params_[i], averages_[i]);
}

EMA::Applied::Applied(EMA& ema) : ema_(ema) {
  ema.check_not_applied("ema.apply");
  const NoGradGuard no_grad;
  for (const Tensor& parameter : ema.params_)
    originals_.push_back(detail::copy_of(parameter, parameter.dtype(), parameter.device()));
  ema.copy_to_params();
  ema.applied_ = true;
}

EMA::Applied::~Applied() {
  const NoGradGuard no_grad;
  for (std::size_t i = 0; i < originals_.size(); ++i) overwrite(ema_.params_[i], originals_[i]);
  ema_.applied_ = false;
}

StateDict EMA::state_dict() const {
  StateDict result = {{"updates", tensor(updates_)}};
  for (std::size_t i = 0; i < averages_.size(); ++i)
    result.emplace(fmt::format("average.{}", i), averages_[i]);
  return result;
}

void EMA::load_state_dict(const StateDict& state) {
  constexpr const char* where = "ema.load_state_dict";
  detail::check_same_layout(state, state_dict(), where);
  const auto updates = state.at("updates").item<std::int64_t>();
  check(updates >= 0, where, "updates must be at least 0; got {}", updates);
  TensorList averages;
  for (std::size_t i = 0; i < params_.size(); ++i)
    averages.push_back(detail::copy_of(state.at(fmt::format("average.{}", i)),
                                       average_dtype(params_[i]), params_[i].device()));
  averages_ = std::move(averages);
  updates_ = updates;
}

}  // namespace norma::optim
