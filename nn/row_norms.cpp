#include "norma/nn/row_norms.h"

#include "norma/core/factory.h"
#include "norma/nn/init.h"
#include "norma/ops/group_norm.h"
#include "norma/ops/norm.h"
#include "norma/ops/poly_norm.h"
#include "norma/ops/view.h"

#include <cmath>

namespace norma::nn {

using detail::add_norm_parameter;
using detail::check_width;

LlamaRMSNorm::LlamaRMSNorm(std::int64_t hidden_size, double epsilon) : eps(epsilon) {
  check_width("LlamaRMSNorm", hidden_size);
  add_norm_parameter(*this, "weight", weight, {hidden_size}, 1.0);
}
Tensor LlamaRMSNorm::forward(const Tensor& x) {
  return rms_norm(x, weight.shape(), weight, {}, {.eps = eps, .cast_before_weight = true});
}
std::string LlamaRMSNorm::extra_repr() const {
  return fmt::format("({},), eps={}", weight.size(0), eps);
}

GemmaRMSNorm::GemmaRMSNorm(std::int64_t dim, double epsilon) : eps(epsilon) {
  check_width("GemmaRMSNorm", dim);
  add_norm_parameter(*this, "weight", weight, {dim}, 0.0);
}
Tensor GemmaRMSNorm::forward(const Tensor& x) {
  return rms_norm(x, weight.shape(), weight, {}, {.eps = eps, .unit_offset = true});
}
std::string GemmaRMSNorm::extra_repr() const {
  return fmt::format("({},), eps={}", weight.size(0), eps);
}

LayerNorm1P::LayerNorm1P(std::int64_t width, double epsilon, bool with_bias) : eps(epsilon) {
  check_width("LayerNorm1P", width);
  add_norm_parameter(*this, "weight", weight, {width}, 0.0);
  if (with_bias) add_norm_parameter(*this, "bias", bias, {width}, 0.0);
}
Tensor LayerNorm1P::forward(const Tensor& x) {
  return layer_norm(x, weight.shape(), weight, bias, {.eps = eps, .unit_offset = true});
}
std::string LayerNorm1P::extra_repr() const {
  return fmt::format("({},), eps={}", weight.size(0), eps);
}

OriginalRMSNorm::OriginalRMSNorm(std::int64_t width, double epsilon, bool bias, bool affine)
    : d(width), eps(epsilon) {
  check_width("OriginalRMSNorm", d);
  if (!affine) return;
  add_norm_parameter(*this, "scale", scale, {d}, 1.0);
  if (bias) add_norm_parameter(*this, "offset", offset, {d}, 0.0);
}
Tensor OriginalRMSNorm::forward(const Tensor& x) {
  return rms_norm(x, {d}, scale, offset, {.eps = eps, .eps_rule = EpsRule::outside});
}

PRMSNorm::PRMSNorm(std::int64_t d, double share, double epsilon, bool affine)
    : p(share), eps(epsilon) {
  check_width("PRMSNorm", d);
  if (affine) add_norm_parameter(*this, "scale", scale, {d}, 1.0);
}
Tensor PRMSNorm::forward(const Tensor& x) {
  return p_rms_norm(x, p, scale, {}, {.eps = eps, .eps_rule = EpsRule::outside});
}

CRMSNorm::CRMSNorm(std::int64_t d, double epsilon, bool affine) : eps(epsilon) {
  check_width("CRMSNorm", d);
  if (affine) add_norm_parameter(*this, "weight", weight, {d}, 1.0);
}
Tensor CRMSNorm::forward(const Tensor& x) { return crms_norm(x, weight, eps); }

ScaleNorm::ScaleNorm(std::int64_t d, double epsilon) : eps(epsilon) {
  check_width("ScaleNorm", d);
  add_norm_parameter(*this, "g", g, {1}, std::sqrt(static_cast<double>(d)));
}
Tensor ScaleNorm::forward(const Tensor& x) { return scale_norm(x, g, eps); }

Tensor L2Norm::forward(const Tensor& x) { return normalize(x, -1, eps); }

Tensor SimpleRMSNorm::forward(const Tensor& x) { return simple_rms_norm(x, {}, false, eps); }

AdaNorm::AdaNorm(std::int64_t width, double factor, double slope, double epsilon)
    : dim(width), c(factor), k(slope), eps(epsilon) {
  check_width("AdaNorm", width);
}
Tensor AdaNorm::forward(const Tensor& x) { return ada_norm(x, {dim}, c, k, eps); }

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels, double epsilon, bool affine)
    : num_groups(groups), num_channels(channels), eps(epsilon) {
  check<ValueError>(groups > 0 && channels > 0 && channels % groups == 0, "GroupNorm",
                    "num_groups must divide num_channels; got {} and {}", groups, channels);
  if (!affine) return;
  add_norm_parameter(*this, "weight", weight, {channels}, 1.0);
  add_norm_parameter(*this, "bias", bias, {channels}, 0.0);
}
Tensor GroupNorm::forward(const Tensor& x) { return group_norm(x, num_groups, weight, bias, eps); }
std::string GroupNorm::extra_repr() const {
  return fmt::format("{}, {}, eps={}, affine={}", num_groups, num_channels, eps,
                     weight.defined() ? "True" : "False");
}

Tensor TokenGroupNorm::forward(const Tensor& x) {
  const std::int64_t tokens = x.numel() / num_channels;
  return GroupNorm::forward(x.reshape({tokens, num_channels})).reshape(x.shape());
}

InstanceNorm::InstanceNorm(std::int64_t features, double epsilon, double share, bool affine,
                           bool track_running_stats)
    : eps(epsilon), momentum(share) {
  check_width("InstanceNorm", features);
  if (affine) {
    add_norm_parameter(*this, "weight", weight, {features}, 1.0);
    add_norm_parameter(*this, "bias", bias, {features}, 0.0);
  }
  if (track_running_stats) {
    running_mean = zeros({features});
    running_var = ones({features});
    num_batches_tracked = zeros({}, {.dtype = int64});
    register_buffer("running_mean", running_mean);
    register_buffer("running_var", running_var);
    register_buffer("num_batches_tracked", num_batches_tracked);
  }
}
Tensor InstanceNorm::forward(const Tensor& x) {
  return instance_norm(x, running_mean, running_var, weight, bias,
                       is_training() || !running_mean.defined(), momentum, eps);
}

PolyNorm::PolyNorm(double epsilon) : eps(epsilon) {
  add_norm_parameter(*this, "weight", weight, {3}, 1.0 / 3.0);
  add_norm_parameter(*this, "bias", bias, {1}, 0.0);
}
Tensor PolyNorm::forward(const Tensor& x) { return poly_norm(x, weight, bias, eps); }

namespace {

/// {shift, scale, gate} of a condition; without the gate where there is none.
TensorList modulate(Linear& modulation, const Tensor& condition, std::int64_t width) {
  return split(modulation(condition), width, -1);
}

ModulatedNorm with_gate(const Tensor& output, const TensorList& parts) {
  return {output, parts.size() > 2 ? parts[2].unsqueeze(1) : Tensor()};
}

void start_closed(Linear& modulation) {
  init::zeros_(modulation.weight);
  init::zeros_(modulation.bias);
}

}  // namespace

AdaLayerNorm::AdaLayerNorm(std::int64_t width, std::int64_t condition_dim, bool gated,
                           double epsilon)
    : eps(epsilon),
      modulation(condition_dim, (gated ? 3 : 2) * width),
      width_(width),
      gated_(gated) {
  register_module("modulation", modulation);
  start_closed(modulation);
}
ModulatedNorm AdaLayerNorm::forward(const Tensor& x, const Tensor& condition) {
  const TensorList parts = modulate(modulation, condition, width_);
  return with_gate(ada_layer_norm(x, parts[1], parts[0], eps), parts);
}
std::string AdaLayerNorm::extra_repr() const {
  return fmt::format("({},), eps={}, gated={}", width_, eps, gated_ ? "True" : "False");
}

AdaRMSNorm::AdaRMSNorm(std::int64_t width, std::int64_t condition_dim, bool gated, double epsilon,
                       bool affine)
    : eps(epsilon),
      modulation(condition_dim, (gated ? 3 : 2) * width),
      width_(width),
      gated_(gated) {
  if (affine) add_norm_parameter(*this, "weight", weight, {width}, 1.0);
  register_module("modulation", modulation);
  start_closed(modulation);
}
ModulatedNorm AdaRMSNorm::forward(const Tensor& x, const Tensor& condition) {
  const TensorList parts = modulate(modulation, condition, width_);
  return with_gate(modulated_rms_norm(x, weight, parts[1], parts[0], {.eps = eps}), parts);
}
std::string AdaRMSNorm::extra_repr() const {
  return fmt::format("({},), eps={}, gated={}", width_, eps, gated_ ? "True" : "False");
}

}  // namespace norma::nn
