#include "norma/nn/transformer.h"

#include "norma/core/grad_mode.h"
#include "norma/nn/weight_norm.h"
#include "norma/ops/elementwise.h"

namespace norma::nn {

namespace {

/// The QK-norm of the configuration, or else that of the placement.
QKNorm qk_form(const TransformerConfig& config) {
  if (config.qk_form != QKNorm::none || config.qk_norm != NormKind::none) return config.qk_form;
  const SublayerNorms inside = sublayer_norms(config.placement);
  return inside.unit ? QKNorm::ngpt : inside.qkv ? QKNorm::hybrid : QKNorm::none;
}

AttentionConfig attention_config(const TransformerConfig& config) {
  const SublayerNorms inside = sublayer_norms(config.placement);
  return {.d_model = config.d_model,
          .num_heads = config.num_heads,
          .num_kv_heads = config.num_kv_heads,
          .causal = config.causal,
          .rope = config.positions == Positions::rope,
          .rope_theta = config.rope_theta,
          .qk_norm = config.qk_norm,
          .qk_form = qk_form(config),
          .qk_norm_eps = config.eps.value_or(AttentionConfig{}.qk_norm_eps),
          .qk_groups = config.qk_groups,
          .qk_length = config.qk_length,
          .inner_norm = inside.heads ? config.norm : NormKind::none,
          .inner_norm_eps = config.eps,
          .head_scale = inside.head_scale,
          .softcap = config.softcap,
          .dropout = config.attention_dropout,
          .bias = config.bias};
}

/// Cross-attention sees all of the memory, whose positions are not those of x. It has neither the
/// norm of SubLN nor the gains of NormFormer.
std::unique_ptr<MultiheadAttention> cross_attention(const TransformerConfig& config) {
  if (config.role != StackRole::decoder) return nullptr;
  AttentionConfig cross = attention_config(config);
  cross.causal = false;
  cross.rope = false;
  cross.inner_norm = NormKind::none;
  cross.head_scale = false;
  return std::make_unique<MultiheadAttention>(cross);
}

FeedForwardConfig feed_forward_config(const TransformerConfig& config) {
  const SublayerNorms inside = sublayer_norms(config.placement);
  return {.d_model = config.d_model,
          .d_ff = config.d_ff > 0 ? config.d_ff : 4 * config.d_model,
          .activation = config.activation,
          .dropout = config.ffn_dropout,
          .bias = config.bias,
          .inner_norm = inside.inner ? config.norm : NormKind::none,
          .inner_norm_eps = config.eps,
          .unit_scale = inside.unit};
}

std::string norm_name(const TransformerConfig& config, const std::string& name) {
  if (config.llama_names && name == "norm1") return "input_layernorm";
  if (config.llama_names && name == "norm2") return "post_attention_layernorm";
  return name;
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
  check_probability("mix_share", mix_share);
  check<ValueError>(layer_scale >= 0.0, name, "layer_scale must be positive, or 0 for none; got {}",
                    layer_scale);
  check<ValueError>(!res_scale || placement == NormPlacement::norm_former, name,
                    "res_scale must go with the norm_former placement; got {}",
                    to_string(placement));
  check<ValueError>((role == StackRole::alone) == (other_layers == 0) && other_layers >= 0, name,
                    "other_layers must be positive for role encoder or decoder, else 0; got {} "
                    "for {}",
                    other_layers, to_string(role));
  check<ValueError>(!eps || *eps >= 0.0, name, "eps must be at least 0; got {}", eps.value_or(0.0));
  attention_config(*this).resolved();
}

TransformerBlock::TransformerBlock(const TransformerConfig& config, std::int64_t layer,
                                   std::shared_ptr<Tensor> accumulated)
    : self_attn(attention_config(validated(config))),
      multihead_attn(cross_attention(config)),
      mlp(feed_forward_config(config)),
      dropout(config.dropout),
      placement_(make_placement(config.placement, {.norm = config.norm,
                                                   .d_model = config.d_model,
                                                   .eps = config.eps,
                                                   .layer = layer,
                                                   .num_layers = config.num_layers,
                                                   .role = config.role,
                                                   .other_layers = config.other_layers,
                                                   .sublayers = multihead_attn ? 3U : 2U,
                                                   .mix_share = config.mix_share,
                                                   .res_scale = config.res_scale,
                                                   .pb_relax = config.pb_relax,
                                                   .accumulated = std::move(accumulated)})) {
  register_module("self_attn", self_attn);
  if (multihead_attn) register_module("multihead_attn", *multihead_attn);
  register_module("mlp", mlp);
  for (const auto& [name, part] : placement_->parts())
    register_module(norm_name(config, name), *part);
  for (std::size_t i = 1; config.layer_scale > 0.0 && i <= (multihead_attn ? 3U : 2U); ++i) {
    scales_.push_back(std::make_unique<LayerScale>(config.d_model, config.layer_scale));
    register_module(fmt::format("ls{}", i), *scales_.back());
  }
  register_module("dropout", dropout);
  if (sublayer_norms(config.placement).unit) mark_unit_matrices(*this);
  initial_gain_ =
      residual_gain(config.placement, config.num_layers, config.role, config.other_layers);
  cross_gain_ = config.placement == NormPlacement::sub_ln ? 1.0 : initial_gain_;
  scale_initial_values();
  for (Module* module : modules())
    if (auto* norm = dynamic_cast<Norm*>(module)) norms_.push_back(norm);
}

void TransformerBlock::scale_initial_values() {
  if (initial_gain_ == 1.0) return;
  const NoGradGuard no_grad;
  const auto scale = [](Linear& linear, double gain) {
    linear.weight.copy_(linear.weight * gain);
    if (linear.bias.defined()) linear.bias.copy_(linear.bias * gain);
  };
  scale(self_attn.v_proj, initial_gain_);
  scale(self_attn.o_proj, initial_gain_);
  if (multihead_attn) {
    scale(multihead_attn->v_proj, cross_gain_);
    scale(multihead_attn->o_proj, cross_gain_);
  }
  for (Module* child : mlp.children())
    if (auto* linear = dynamic_cast<Linear*>(child)) scale(*linear, initial_gain_);
}

Tensor TransformerBlock::output(std::size_t i, const Tensor& y) {
  return dropout(scales_.empty() ? y : (*scales_[i])(y));
}

Tensor TransformerBlock::forward(const Tensor& x, const Tensor& key_padding_mask,
                                 KeyValueCache* cache, const Tensor& memory,
                                 const Tensor& memory_key_padding_mask) {
  check<ValueError>(memory.defined() == (multihead_attn != nullptr), "TransformerBlock",
                    "memory must be given exactly where role is decoder; got {}",
                    memory.defined() ? "one" : "none");
  for (Norm* norm : norms_) norm->use_padding(key_padding_mask);
  std::vector<Sublayer> sublayers;
  sublayers.emplace_back(
      [&](const Tensor& h) { return output(0, self_attn(h, key_padding_mask, cache)); });
  if (multihead_attn) {
    for (const AnyNorm* norm : {&multihead_attn->k_norm, &multihead_attn->v_norm})
      if (*norm) (*norm)->use_padding(memory_key_padding_mask);
    sublayers.emplace_back([&](const Tensor& h) {
      return output(1, (*multihead_attn)(h, memory_key_padding_mask, nullptr, memory));
    });
  }
  sublayers.emplace_back(
      [&, last = sublayers.size()](const Tensor& h) { return output(last, mlp(h)); });
  return placement_->forward(x, sublayers);
}

TransformerEncoder::TransformerEncoder(const TransformerConfig& options)
    : config(validated(options)) {
  if (needs_input_norm(config.placement)) {
    embed_norm = make_norm(config.norm, config.d_model, config.eps);
    register_module("embed_norm", *embed_norm);
  }
  if (config.placement == NormPlacement::residual) accumulated_ = std::make_shared<Tensor>();
  register_module("layers", layers);
  for (std::int64_t i = 0; i < config.num_layers; ++i) layers.emplace(config, i, accumulated_);
  if (!needs_final_norm(config.placement)) return;
  norm = make_norm(config.norm, config.d_model, config.eps);
  register_module("norm", *norm);
}

std::string TransformerEncoder::extra_repr() const {
  return fmt::format("positions={}", to_string(config.positions));
}

Tensor TransformerEncoder::forward(const Tensor& x, const Tensor& key_padding_mask,
                                   DecoderCache* cache, const Tensor& memory,
                                   const Tensor& memory_key_padding_mask) {
  for (const AnyNorm* own : {&embed_norm, &norm})
    if (*own) (*own)->use_padding(key_padding_mask);
  Tensor h = embed_norm ? (*embed_norm)(x) : x;
  if (accumulated_) *accumulated_ = h;
  if (cache != nullptr) {
    if (cache->layers.empty()) cache->layers.resize(layers.size());
    check<ValueError>(cache->layers.size() == layers.size(), "TransformerEncoder",
                      "a cache must have as many layers as the model; got {} and {}",
                      cache->layers.size(), layers.size());
  }
  for (std::size_t i = 0; i < layers.size(); ++i)
    h = layers[i](h, key_padding_mask, cache != nullptr ? &cache->layers[i] : nullptr, memory,
                  memory_key_padding_mask);
  if (!norm) return h;
  if (!accumulated_) return (*norm)(h);
  return h + (*norm)(std::exchange(*accumulated_, Tensor()));
}

TransformerDecoder::TransformerDecoder(const TransformerConfig& config)
    : stack([&] {
        TransformerConfig decoder = config;
        decoder.role = StackRole::decoder;
        return decoder;
      }()) {
  for (const NamedModule& part : stack.named_children()) register_module(part.name, *part.module);
}

Tensor TransformerDecoder::forward(const Tensor& x, const Tensor& memory,
                                   const Tensor& key_padding_mask,
                                   const Tensor& memory_key_padding_mask) {
  return stack(x, key_padding_mask, nullptr, memory, memory_key_padding_mask);
}

}  // namespace norma::nn
