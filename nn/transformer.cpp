#include "norma/nn/transformer.h"

namespace norma::nn {

namespace {

AttentionConfig attention_config(const TransformerConfig& config) {
  return {.d_model = config.d_model,
          .num_heads = config.num_heads,
          .num_kv_heads = config.num_kv_heads,
          .causal = config.causal,
          .rope = config.positions == Positions::rope,
          .rope_theta = config.rope_theta,
          .qk_norm = config.qk_norm,
          .softcap = config.softcap,
          .dropout = config.attention_dropout,
          .bias = config.bias};
}

FeedForwardConfig feed_forward_config(const TransformerConfig& config) {
  return {.d_model = config.d_model,
          .d_ff = config.d_ff > 0 ? config.d_ff : 4 * config.d_model,
          .activation = config.activation,
          .dropout = config.ffn_dropout,
          .bias = config.bias};
}

const TransformerConfig& validated(const TransformerConfig& config) {
  config.validate();
  return config;
}

}  // namespace

void TransformerConfig::validate() const {
  constexpr const char* name = "TransformerConfig";
  check<ValueError>(d_model > 0 && num_heads > 0 && num_layers > 0, name,
                    "d_model, num_heads and num_layers must be positive; got d_model = {}, "
                    "num_heads = {}, num_layers = {}",
                    d_model, num_heads, num_layers);
  check<ValueError>(d_ff >= 0, name, "d_ff must be positive, or 0 for 4 * d_model; got d_ff = {}",
                    d_ff);
  const auto check_probability = [&](const char* field, double p) {
    check<ValueError>(p >= 0.0 && p <= 1.0, name, "{} must be in [0, 1]; got {}", field, p);
  };
  check_probability("dropout", dropout);
  check_probability("attention_dropout", attention_dropout);
  check_probability("ffn_dropout", ffn_dropout);
  check<ValueError>(!eps || *eps >= 0.0, name, "eps must be at least 0; got {}", eps.value_or(0.0));
  attention_config(*this).resolved();
}

TransformerBlock::TransformerBlock(const TransformerConfig& config, std::int64_t layer)
    : self_attn(attention_config(validated(config))),
      mlp(feed_forward_config(config)),
      dropout(config.dropout),
      placement_(make_placement(config.placement, {.norm = config.norm,
                                                   .d_model = config.d_model,
                                                   .eps = config.eps,
                                                   .layer = layer,
                                                   .num_layers = config.num_layers})) {
  register_module("self_attn", self_attn);
  register_module("mlp", mlp);
  for (const auto& [name, norm] : placement_->norms()) register_module(name, *norm);
  register_module("dropout", dropout);
}

Tensor TransformerBlock::forward(const Tensor& x, const Tensor& key_padding_mask) {
  return placement_->forward(
      x, [&](const Tensor& h) { return dropout(self_attn(h, key_padding_mask)); },
      [&](const Tensor& h) { return dropout(mlp(h)); });
}

TransformerEncoder::TransformerEncoder(const TransformerConfig& options)
    : config(validated(options)) {
  register_module("layers", layers);
  for (std::int64_t i = 0; i < config.num_layers; ++i) layers.emplace(config, i);
  if (!needs_final_norm(config.placement)) return;
  norm = make_norm(config.norm, config.d_model, config.eps);
  register_module("norm", *norm);
}

Tensor TransformerEncoder::forward(const Tensor& x, const Tensor& key_padding_mask) {
  Tensor h = x;
  for (TransformerBlock& layer : layers) h = layer(h, key_padding_mask);
  return norm ? (*norm)(h) : h;
}

}  // namespace norma::nn
