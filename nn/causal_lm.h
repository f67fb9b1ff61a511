// CausalLM: a decoder-only language model.
#pragma once

#include "norma/nn/embedding.h"
#include "norma/nn/transformer.h"

namespace norma::nn {

struct CausalLMConfig {
  std::int64_t vocab_size = 0;
  bool tie_word_embeddings = true;  ///< lm_head has the weight of embed_tokens
  /// Of the initial N(0, std^2) of all matrices; absent: PyTorch's default of each layer, a tied
  /// weight being that of the linear one.
  std::optional<double> initializer_range = 0.02;
  double embedding_dropout = 0.0;
  TransformerConfig decoder = {};  ///< causal whatever it says

  /// Throws ValueError that names the fields of an impossible combination.
  void validate() const;
};

/// jingyaogong/minimind, v2 small: 8 layers of width 512, 17 RMSNorms, 25,829,888 parameters.
CausalLMConfig minimind_v2();
/// The same, minimind-3: 8 layers of width 768, QK-norm, 33 RMSNorms, 63,912,192 parameters.
CausalLMConfig minimind_3();

/// The model without its head: embed_tokens, dropout, layers, norm. Names as in HF Llama: what the
/// encoder holds stands here.
class CausalDecoder : public Layer<CausalDecoder> {
 public:
  explicit CausalDecoder(const CausalLMConfig& config);
  Tensor forward(const Tensor& tokens, DecoderCache* cache = nullptr);

  Embedding embed_tokens;
  Dropout dropout;
  TransformerEncoder stack;
};

/// tokens [batch, length] int64 to logits [batch, length, vocab_size] of the token that follows
/// each.
///
/// With a `cache` the tokens continue those that it has seen. Parameters are named as in HF Llama
/// and MiniMind ("model.layers.0.self_attn.q_proj.weight") where the decoder is theirs: pre
/// placement, llama_names, no bias. Tied weights stand under both names in the state_dict.
///
/// The ngpt placement: logits times learned s_z [vocab_size], which stand for 1 and are stored as 1
/// / sqrt(d_model); call normalize_matrices_ (nn/weight_norm.h) before training and after every
/// step.
///
/// Errors: ValueError that names the fields; ShapeError, IndexError for tokens.
class CausalLM : public Layer<CausalLM> {
 public:
  explicit CausalLM(const CausalLMConfig& config);
  Tensor forward(const Tensor& tokens, DecoderCache* cache = nullptr);

  const CausalLMConfig config;
  CausalDecoder model;
  Linear lm_head;
  Tensor s_z;  ///< undefined but for ngpt
};

/// Mean cross-entropy of each token given those before it, in nats: logits [batch, length, vocab]
/// of tokens [batch, length]. The first token of a row is not predicted.
Tensor next_token_loss(const Tensor& logits, const Tensor& tokens);

}  // namespace norma::nn
