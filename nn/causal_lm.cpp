#include "norma/nn/causal_lm.h"

#include "norma/nn/init.h"
#include "norma/nn/weight_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/loss.h"

#include <cmath>

namespace norma::nn {

namespace {

CausalLMConfig minimind(const TransformerConfig& shape) {
  CausalLMConfig config{.vocab_size = 6400, .decoder = shape};
  TransformerConfig& decoder = config.decoder;
  decoder.num_layers = 8;
  decoder.num_heads = 8;
  decoder.activation = Activation::swiglu;
  decoder.placement = NormPlacement::pre;
  decoder.dropout = 0.0;
  decoder.positions = Positions::rope;
  decoder.rope_theta = 1e6;
  decoder.bias = false;
  decoder.llama_names = true;
  return config;
}

double sphere_scale(const CausalLMConfig& config) {
  return std::sqrt(static_cast<double>(config.decoder.d_model));
}

/// The stack of this model, checked.
TransformerConfig stack_config(const CausalLMConfig& config) {
  config.validate();
  TransformerConfig stack = config.decoder;
  stack.causal = true;
  return stack;
}

}  // namespace

CausalLMConfig minimind_v2() {
  CausalLMConfig config = minimind({.d_model = 512,
                                    .num_kv_heads = 2,
                                    .d_ff = 1408,
                                    .norm = NormKind::llama_rms_norm,
                                    .eps = 1e-5});
  config.initializer_range = std::nullopt;
  return config;
}

CausalLMConfig minimind_3() {
  return minimind({.d_model = 768,
                   .num_kv_heads = 4,
                   .d_ff = 2432,
                   .norm = NormKind::rms_norm,
                   .eps = 1e-6,
                   .qk_norm = NormKind::rms_norm});
}

void CausalLMConfig::validate() const {
  constexpr const char* name = "CausalLMConfig";
  check<ValueError>(vocab_size > 0, name, "vocab_size must be positive; got {}", vocab_size);
  check<ValueError>(!initializer_range || *initializer_range >= 0.0, name,
                    "initializer_range must be at least 0; got {}",
                    initializer_range.value_or(0.0));
  check<ValueError>(embedding_dropout >= 0.0 && embedding_dropout <= 1.0, name,
                    "embedding_dropout must be in [0, 1]; got {}", embedding_dropout);
  check<ValueError>(decoder.positions != Positions::learned, name,
                    "positions must be rope or none; got learned; a table of positions would end "
                    "where the text does not");
  decoder.validate();
}

CausalDecoder::CausalDecoder(const CausalLMConfig& config)
    : embed_tokens(config.vocab_size, config.decoder.d_model),
      dropout(config.embedding_dropout),
      stack(stack_config(config)) {
  register_module("embed_tokens", embed_tokens);
  register_module("dropout", dropout);
  for (const NamedModule& part : stack.named_children()) register_module(part.name, *part.module);
}

Tensor CausalDecoder::forward(const Tensor& tokens, DecoderCache* cache) {
  check<ShapeError>(tokens.dim() == 2 && tokens.size(1) > 0, "CausalLM",
                    "tokens must be [batch, length] with a positive length; got {}",
                    tokens.shape());
  return stack(dropout(embed_tokens(tokens)), Tensor(), cache);
}

CausalLM::CausalLM(const CausalLMConfig& options)
    : config(options), model(config), lm_head(config.decoder.d_model, config.vocab_size, false) {
  register_module("model", model);
  register_module("lm_head", lm_head);
  if (config.tie_word_embeddings) {
    model.embed_tokens.weight = lm_head.weight;
  }
  if (config.decoder.placement == NormPlacement::ngpt) {
    detail::add_norm_parameter(*this, "s_z", s_z, {config.vocab_size}, 1.0 / sphere_scale(config));
    mark_unit_matrices(*this);
  }
  if (!config.initializer_range) return;
  for (const NamedParameter& parameter : named_parameters())
    if (parameter.kind == ParameterKind::matrix || parameter.kind == ParameterKind::embedding ||
        parameter.kind == ParameterKind::sphere)
      init::normal_(parameter.tensor, 0.0, *config.initializer_range);
  for (TransformerBlock& block : model.stack.layers) block.scale_initial_values();
}

Tensor CausalLM::forward(const Tensor& tokens, DecoderCache* cache) {
  const Tensor logits = lm_head(model(tokens, cache));
  return s_z.defined() ? logits * (s_z * sphere_scale(config)) : logits;
}

Tensor next_token_loss(const Tensor& logits, const Tensor& tokens) {
  check<ShapeError>(
      logits.dim() == 3 && tokens.dim() == 2 && tokens.size(1) > 1 &&
          logits.size(0) == tokens.size(0) && logits.size(1) == tokens.size(1),
      "next_token_loss",
      "logits must be [batch, length, vocab] of tokens [batch, length], with at least "
      "two tokens; got {} and {}",
      logits.shape(), tokens.shape());
  const std::int64_t batch = tokens.size(0), predicted = tokens.size(1) - 1;
  return cross_entropy(logits.narrow(1, 0, predicted).reshape({batch * predicted, logits.size(2)}),
                       tokens.narrow(1, 1, predicted).reshape({batch * predicted}));
}

}  // namespace norma::nn
