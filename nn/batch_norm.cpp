#include "norma/nn/batch_norm.h"

#include "norma/core/factory.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/norm.h"
#include "norma/ops/view.h"

namespace norma::nn {

using detail::add_norm_parameter;
using detail::check_width;

namespace {

/// [batch, length] for tokens [batch, length, *]: repeated over the dimensions between.
Tensor mask_of_tokens(const Tensor& mask, const Tensor& x) {
  if (!mask.defined()) return mask;
  Tensor expanded = mask;
  while (expanded.dim() < x.dim() - 1) expanded = expanded.unsqueeze(-1);
  return expand(expanded, Shape(x.shape().begin(), x.shape().end() - 1));
}

}  // namespace

BatchNorm::BatchNorm(std::int64_t features, double epsilon, std::optional<double> share,
                     bool affine, bool track_running_stats)
    : num_features(features), eps(epsilon), momentum(share) {
  check_width("BatchNorm", features);
  if (affine) {
    add_norm_parameter(*this, "weight", weight, {features}, 1.0);
    add_norm_parameter(*this, "bias", bias, {features}, 0.0);
  }
  if (!track_running_stats) return;
  running_mean = zeros({features});
  running_var = ones({features});
  num_batches_tracked = zeros({}, {.dtype = int64});
  register_buffer("running_mean", running_mean);
  register_buffer("running_var", running_var);
  register_buffer("num_batches_tracked", num_batches_tracked);
}

double BatchNorm::next_momentum() {
  if (!is_training() || !num_batches_tracked.defined()) return momentum.value_or(0.0);
  num_batches_tracked.copy_(num_batches_tracked + 1);
  return momentum ? *momentum : 1.0 / num_batches_tracked.item();
}

Tensor BatchNorm::mask_for(const Tensor& x) const { return mask_of_tokens(padding_mask_, x); }

Tensor BatchNorm::forward(const Tensor& x) {
  const double share = next_momentum();
  return batch_norm(x, running_mean, running_var, weight, bias, uses_batch(), share, eps);
}

std::string BatchNorm::extra_repr() const {
  return fmt::format("{}, eps={}, momentum={}, affine={}, track_running_stats={}", num_features,
                     eps, momentum ? fmt::format("{}", *momentum) : "None",
                     weight.defined() ? "True" : "False",
                     running_mean.defined() ? "True" : "False");
}

Tensor MaskedBatchNorm::forward(const Tensor& x) {
  const double share = next_momentum();
  return masked_batch_norm(x, mask_for(x), running_mean, running_var, weight, bias, uses_batch(),
                           share, eps);
}

RegularizedBatchNorm::RegularizedBatchNorm(std::int64_t features,
                                           const RegularizedBatchNormOptions& options)
    : MaskedBatchNorm(features, options.eps, options.momentum), options_(options) {}

Tensor RegularizedBatchNorm::forward(const Tensor& x) {
  next_momentum();
  const auto [output, penalty] = regularized_batch_norm(x, mask_for(x), running_mean, running_var,
                                                        weight, bias, is_training(), options_);
  penalty_ = penalty;
  return output;
}

PowerNorm::PowerNorm(std::int64_t features, std::int64_t group_count,
                     const PowerNormOptions& settings)
    : groups(group_count), options(settings) {
  check<ValueError>(features > 0 && groups > 0 && features % groups == 0, "PowerNorm",
                    "groups must divide num_features; got {} and {}", groups, features);
  add_norm_parameter(*this, "weight", weight, {features}, 1.0);
  add_norm_parameter(*this, "bias", bias, {features}, 0.0);
  running_phi = ones({features});
  ema_gz = zeros({features});
  num_batches_tracked = zeros({}, {.dtype = int64});
  register_buffer("running_phi", running_phi);
  register_buffer("ema_gz", ema_gz);
  register_buffer("num_batches_tracked", num_batches_tracked);
}

Tensor PowerNorm::forward(const Tensor& x) {
  if (is_training()) num_batches_tracked.copy_(num_batches_tracked + 1);
  const std::int64_t features = weight.size(0);
  const std::int64_t tokens = x.numel() / features;
  const Tensor grouped = x.reshape({tokens, groups, features / groups});
  const Tensor scaled = rms_norm(grouped, {features / groups}, {}, options.eps).reshape(x.shape());
  return power_norm(scaled, mask_of_tokens(padding_mask_, x), running_phi, ema_gz, weight, bias,
                    is_training(), static_cast<std::int64_t>(num_batches_tracked.item()), options);
}

}  // namespace norma::nn
