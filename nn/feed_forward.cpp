#include "norma/nn/feed_forward.h"

#include "norma/nn/row_norms.h"
#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"

#include <cmath>

namespace norma::nn {

namespace {

norma::Activation fused(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return norma::Activation::relu;
    case Activation::gelu:
      return norma::Activation::gelu;
    case Activation::gelu_tanh:
      return norma::Activation::gelu_tanh;
    case Activation::silu:
      return norma::Activation::silu;
    case Activation::swiglu:
    case Activation::poly_norm:
      break;
  }
  return norma::Activation::none;
}

Tensor activate(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return relu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu(x, "tanh");
    case Activation::silu:
      return silu(x);
    case Activation::swiglu:
    case Activation::poly_norm:
      break;
  }
  return x;
}

}  // namespace

FeedForward::FeedForward(const FeedForwardConfig& options)
    : config(options), dropout_(options.dropout) {
  check<ValueError>(config.d_model > 0 && config.d_ff > 0, "FeedForward",
                    "d_model and d_ff must be positive; got d_model = {}, d_ff = {}",
                    config.d_model, config.d_ff);
  const auto add = [this](const char* name, std::int64_t in, std::int64_t out) {
    auto layer = std::make_unique<Linear>(in, out, config.bias);
    register_module(name, *layer);
    return layer;
  };
  if (config.activation == Activation::swiglu) {
    gate_proj_ = add("gate_proj", config.d_model, config.d_ff);
    up_proj_ = add("up_proj", config.d_model, config.d_ff);
    down_proj_ = add("down_proj", config.d_ff, config.d_model);
  } else {
    fc1_ = add("fc1", config.d_model, config.d_ff);
    fc2_ = add("fc2", config.d_ff, config.d_model);
  }
  if (config.activation == Activation::poly_norm) {
    act_fn_ = std::make_unique<PolyNorm>();
    register_module("act_fn", *act_fn_);
  }
  if (config.inner_norm != NormKind::none) {
    ffn_layernorm_ = make_norm(config.inner_norm, config.d_ff, config.inner_norm_eps);
    register_module("ffn_layernorm", *ffn_layernorm_);
  }
  if (config.unit_scale) {
    detail::add_norm_parameter(*this, "s_u", s_u_, {config.d_ff}, 1.0);
    if (gate_proj_) detail::add_norm_parameter(*this, "s_v", s_v_, {config.d_ff}, 1.0);
  }
  register_module("dropout", dropout_);
}

Tensor FeedForward::hidden(const Tensor& x) {
  // Projections of unit vectors are small: sqrt(d_model) brings them to where activations bend.
  const double unit = std::sqrt(static_cast<double>(config.d_model));
  if (gate_proj_) {
    Tensor gate = (*gate_proj_)(x);
    Tensor up = (*up_proj_)(x);
    if (config.unit_scale) {
      gate = gate * (s_v_ * unit);
      up = up * s_u_;
    }
    return swiglu(gate, up);
  }
  if (!config.unit_scale && !act_fn_ && !fc1_->has_hooks())
    return (*fc1_)(x, fused(config.activation));
  Tensor h = (*fc1_)(x);
  if (config.unit_scale) h = h * (s_u_ * unit);
  return act_fn_ ? (*act_fn_)(h) : activate(h, config.activation);
}

Tensor FeedForward::forward(const Tensor& x) {
  Tensor h = dropout_(hidden(x));
  if (ffn_layernorm_) h = (*ffn_layernorm_)(h);
  return gate_proj_ ? (*down_proj_)(h) : (*fc2_)(h);
}

std::string FeedForward::extra_repr() const {
  return fmt::format("activation={}", to_string(config.activation));
}

}  // namespace norma::nn
