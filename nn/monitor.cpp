#include "norma/nn/monitor.h"

#include "norma/core/grad_mode.h"
#include "norma/nn/attention.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduction.h"
#include "norma/ops/softmax.h"

#include <algorithm>
#include <cmath>

namespace norma::nn {

namespace {

/// Values that statistics can be taken of, or undefined.
Tensor observed(const Tensor& x) {
  if (!x.defined() || !x.is_floating_point() || x.numel() == 0) return {};
  return x.dtype() == float64 ? x.detach() : x.detach().to(float32);
}

double rms(const Tensor& x) { return x.defined() ? std::sqrt(x.square().mean().item()) : 0.0; }
double length(const Tensor& x) { return x.defined() ? vector_norm(x).item() : 0.0; }

/// The record with this name, made where there is none.
template <class T>
T& record(std::vector<T>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const T& one) { return one.name == name; });
  if (found != all.end()) return *found;
  all.emplace_back();
  all.back().name = name;
  return all.back();
}

/// Mean over queries of -sum(p log p); scores are -inf where a query may not look.
double mean_entropy(const Tensor& scores) {
  const Tensor logs = log_softmax(scores, -1);
  const Tensor terms = where(isfinite(logs), logs.exp() * logs, 0.0);
  return -terms.sum({-1}).mean().item();
}

}  // namespace

struct Monitor::Seen {
  std::vector<ActivationStats> activations;
  std::vector<AttentionStats> attention;
  bool paused = false;  // the monitor itself calls modules

  void activation(const std::string& name, const Tensor& input, const Tensor& output) {
    const Tensor y = observed(output);
    if (!y.defined()) return;
    ActivationStats& stats = record(activations, name);
    stats.mean = y.mean().item();
    stats.std = norma::std(y, {}, 0).item();
    stats.rms = rms(y);
    stats.max = amax(abs(y)).item();
    stats.input_rms = rms(observed(input));
  }
  void scores(const std::string& name, MultiheadAttention& module, const Tensor& input) {
    paused = true;
    const Tensor scores = module.scores(input.detach());
    paused = false;
    AttentionStats& stats = record(attention, name);
    stats.max_logit = amax(where(isfinite(scores), abs(scores), 0.0)).item();
    stats.entropy = mean_entropy(scores);
  }
};

Monitor::Monitor(Module& model, const Filter& wanted)
    : model_(model), seen_(std::make_shared<Seen>()) {
  for (const NamedModule& one : model.named_modules()) {
    if (wanted && !wanted(one)) continue;
    handles_.push_back(one.module->register_forward_hook(
        [seen = seen_, name = one.name](Module& module, const Tensor& x, const Tensor& y) {
          if (seen->paused) return;
          const NoGradGuard no_grad;
          seen->activation(name, x, y);
          if (auto* attention = dynamic_cast<MultiheadAttention*>(&module))
            seen->scores(name, *attention, x);
        }));
    handles_.push_back(one.module->register_full_backward_hook(
        [seen = seen_, name = one.name](Module&, const Tensor&, const Tensor& grad_output) {
          const NoGradGuard no_grad;
          record(seen->activations, name).gradient_norm = length(observed(grad_output));
        }));
  }
}

Monitor::~Monitor() {
  for (RemovableHandle& handle : handles_) handle.remove();
}

const std::vector<ActivationStats>& Monitor::activations() const { return seen_->activations; }
const std::vector<AttentionStats>& Monitor::attention() const { return seen_->attention; }

std::vector<ParameterStats> Monitor::parameters() const {
  const NoGradGuard no_grad;
  std::vector<ParameterStats> result;
  for (const NamedParameter& one : model_.named_parameters()) {
    ParameterStats stats{.name = one.name, .kind = one.kind};
    stats.norm = length(observed(one.tensor));
    stats.gradient_norm = length(observed(one.tensor.grad()));
    if (result.size() < before_.size()) {
      const Tensor& before = before_[result.size()];
      const double size = length(observed(before));
      const double change = length(observed(one.tensor.detach() - before));
      stats.update_ratio = size > 0.0 ? change / size : 0.0;
    }
    result.push_back(std::move(stats));
  }
  return result;
}

void Monitor::before_step() {
  const NoGradGuard no_grad;
  before_.clear();
  for (const Tensor& parameter : model_.parameters()) before_.push_back(parameter.detach().clone());
}

void Monitor::clear() {
  seen_->activations.clear();
  seen_->attention.clear();
}

}  // namespace norma::nn
