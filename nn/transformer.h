// TransformerBlock and TransformerEncoder: attention and feed-forward with any norm in any
// placement.
#pragma once

#include "norma/nn/attention.h"
#include "norma/nn/dropout.h"
#include "norma/nn/feed_forward.h"
#include "norma/nn/placement.h"
#include "norma/nn/point_norms.h"
#include "norma/nn/sequential.h"

namespace norma::nn {

/// How a model knows the order of its tokens.
enum class Positions {
  none,
  learned,  ///< a table added to the embeddings, by the model around the encoder
  rope,     ///< rotation of queries and keys, in attention
};

template <>
struct EnumNames<Positions> {
  static constexpr const char* type = "Positions";
  static constexpr auto values = std::to_array<std::pair<Positions, std::string_view>>(
      {{Positions::none, "none"}, {Positions::learned, "learned"}, {Positions::rope, "rope"}});
};

/// A stack of Transformer blocks: `TransformerConfig{.d_model = 128, .num_heads = 4, .d_ff = 256,
/// .num_layers = 2}`.
struct TransformerConfig {
  std::int64_t d_model = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;  ///< 0: num_heads
  std::int64_t d_ff = 0;          ///< 0: 4 * d_model
  std::int64_t num_layers = 1;
  Activation activation = Activation::gelu;
  NormKind norm = NormKind::layer_norm;
  NormPlacement placement = NormPlacement::pre;
  std::optional<double> eps = std::nullopt;  ///< of the norms; default of the kind
  double dropout = 0.1;                      ///< on the output of each sublayer
  double attention_dropout = 0.0;            ///< on the attention probabilities
  double ffn_dropout = 0.0;                  ///< on the hidden layer of the feed-forward
  Positions positions = Positions::none;     ///< the block itself acts on rope only
  double rope_theta = 10000.0;
  bool pb_relax = false;     ///< of the sandwich placement
  double mix_share = 0.25;   ///< of the mix placement: share of the blocks that are post
  bool res_scale = false;    ///< of norm_former: a gain for each channel of the last residual
  double layer_scale = 0.0;  ///< LayerScale of each sublayer's output, its initial value; 0: none
  StackRole role = StackRole::alone;  ///< decoder: with cross-attention
  std::int64_t other_layers = 0;      ///< of the other stack of an encoder-decoder
  NormKind qk_norm = NormKind::none;
  QKNorm qk_form = QKNorm::none;  ///< a published form instead of qk_norm
  std::int64_t qk_length = 512;   ///< usual length, from which QKNorm::henry starts
  std::int64_t qk_groups = 1;     ///< parts of a head that QKNorm::l2 normalizes
  double softcap = 0.0;
  bool causal = false;
  bool bias = true;          ///< of the linear layers; the paper of ngpt has none
  bool llama_names = false;  ///< norm1, norm2 as input_layernorm, post_attention_layernorm

  /// Throws ValueError that names the fields of an impossible combination.
  void validate() const;
};

/// One block: self_attn and mlp, each with dropout on its output, joined by the norms of the
/// placement ("norm1", "norm2"; with llama_names as HF Llama has them). The decoder of an
/// encoder-decoder has cross-attention between the two, multihead_attn as in
/// torch.nn.TransformerDecoderLayer, without rotation; "norm2" is then its norm and "norm3" that of
/// mlp.
class TransformerBlock : public Layer<TransformerBlock> {
 public:
  /// `layer`: index of this block in a stack of config.num_layers; `accumulated`: see
  /// PlacementContext.
  explicit TransformerBlock(const TransformerConfig& config, std::int64_t layer = 0,
                            std::shared_ptr<Tensor> accumulated = nullptr);
  /// x [batch, length, d_model]; key_padding_mask [batch, length] bool, true = padding; cache as in
  /// MultiheadAttention; for a decoder memory [batch, memory_length, d_model] and its mask.
  Tensor forward(const Tensor& x, const Tensor& key_padding_mask = {},
                 KeyValueCache* cache = nullptr, const Tensor& memory = {},
                 const Tensor& memory_key_padding_mask = {});
  /// DeepNorm and SubLN: multiplies the values of the feed-forward, v_proj and o_proj (SubLN: not
  /// of cross-attention) by the gain of the placement. The constructor does; whoever sets other
  /// initial values does it after that.
  void scale_initial_values();

  MultiheadAttention self_attn;
  std::unique_ptr<MultiheadAttention> multihead_attn;  ///< null but in a decoder
  FeedForward mlp;
  Dropout dropout;

 private:
  /// What sublayer i adds to the stream.
  Tensor output(std::size_t i, const Tensor& y);

  std::unique_ptr<Placement> placement_;
  std::vector<std::unique_ptr<LayerScale>> scales_;  // "ls1", …; empty without layer_scale
  std::vector<Norm*> norms_;                         // all in this block
  double initial_gain_ = 1.0, cross_gain_ = 1.0;
};

/// config.num_layers blocks ("layers.0", …), then a norm ("norm") where the placement needs one,
/// and before them "embed_norm" where it wants that. With the ngpt placement call
/// normalize_matrices_ (nn/weight_norm.h) before training and after every step of the optimizer.
class TransformerEncoder : public Layer<TransformerEncoder> {
 public:
  explicit TransformerEncoder(const TransformerConfig& config);
  /// As the blocks.
  Tensor forward(const Tensor& x, const Tensor& key_padding_mask = {},
                 DecoderCache* cache = nullptr, const Tensor& memory = {},
                 const Tensor& memory_key_padding_mask = {});
  std::string extra_repr() const override;

  const TransformerConfig config;
  ModuleList<TransformerBlock> layers;
  AnyNorm embed_norm;  ///< of what comes in; null where the placement needs none
  AnyNorm norm;        ///< null where the placement needs none

 private:
  std::shared_ptr<Tensor> accumulated_;  // second stream of ResiDual, while forward runs
};

/// The decoder of an encoder-decoder: a stack like that of TransformerEncoder, with the same names,
/// whose blocks see the memory that the encoder gives. `config` is taken with role decoder;
/// other_layers are the encoder's, whose own configuration has role encoder and the decoder's
/// layers there: DeepNorm and SubLN depend on both. As torch.nn.TransformerDecoder.
class TransformerDecoder : public Layer<TransformerDecoder> {
 public:
  explicit TransformerDecoder(const TransformerConfig& config);
  /// x [batch, length, d_model], memory [batch, memory_length, d_model], masks bool, true =
  /// padding.
  Tensor forward(const Tensor& x, const Tensor& memory, const Tensor& key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {});

  TransformerEncoder stack;
};

}  // namespace norma::nn
