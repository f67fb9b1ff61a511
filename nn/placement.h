// Placements: where a Transformer block has its norms. Each is one small class whose `forward` is
// the formula of its paper.
//
// To add one: a value of NormPlacement with its name, a class in placement.cpp and its line in
// make_placement. TransformerBlock needs no change: it hands over its sublayers and registers what
// the placement made. What a placement wants inside of the sublayers (SubLN, NormFormer,
// HybridNorm, nGPT) it says in sublayer_norms(), and what of their initial values, in
// residual_gain().
#pragma once

#include "norma/nn/norm.h"

#include <functional>
#include <string>
#include <vector>

namespace norma::nn {

/// Where the norms of a block stand. Below f is either sublayer, N a norm, each with its own
/// weights. An open set.
enum class NormPlacement {
  none,         ///< x + f(x)
  post,         ///< N(x + f(x)): Vaswani et al. 2017
  pre,          ///< x + f(N(x)), and a final norm after the last block: Xiong et al. 2020
  sandwich,     ///< x + N(f(N(x))), final norm: Ding et al. 2021 (CogView); with PB-relax if wanted
  peri,         ///< sandwich, with a norm of the embeddings: Kim et al. 2025
  olmo2,        ///< x + N(f(x)), final norm: OLMo 2, Swin V2
  deep_norm,    ///< N(alpha x + f(x)) and its initial values: Wang et al. 2022
  norm_former,  ///< pre, with N behind attention, head scale, N inside the feed-forward: Shleifer
                ///< 2021
  sub_ln,  ///< pre, with N before both output projections and its initial values: Wang et al. 2022
  residual,     ///< ResiDual: N(x + f(x)), plus N(sum of all f) at the end: Xie et al. 2023
  scaled,       ///< LayerNorm scaling: x + f(N(x) / sqrt(layer)), final norm: Sun et al. 2025
  mix,          ///< Mix-LN: post in the first quarter of the blocks, else pre: Li et al. 2024
  hybrid,       ///< HybridNorm: y = x + attention with QKV-norm, N(y) + f(N(y)): Zhuo et al. 2025
  hybrid_star,  ///< hybrid, but the first block is pre with QKV-norm
  keel,         ///< N(alpha x + f(N(x))), alpha = number of sublayers: as in x-transformers
  parallel,     ///< x + attention(N(x)) + feed_forward(N'(x)), final norm: GPT-J, PaLM
  ngpt,  ///< unit vectors: normalize(a + |alpha| (normalize(f(x)) - a)): Loshchilov et al. 2024
};

template <>
struct EnumNames<NormPlacement> {
  static constexpr const char* type = "NormPlacement";
  static constexpr auto values = std::to_array<std::pair<NormPlacement, std::string_view>>(
      {{NormPlacement::none, "none"},
       {NormPlacement::post, "post"},
       {NormPlacement::pre, "pre"},
       {NormPlacement::sandwich, "sandwich"},
       {NormPlacement::peri, "peri"},
       {NormPlacement::olmo2, "olmo2"},
       {NormPlacement::deep_norm, "deep_norm"},
       {NormPlacement::norm_former, "norm_former"},
       {NormPlacement::sub_ln, "sub_ln"},
       {NormPlacement::residual, "residual"},
       {NormPlacement::scaled, "scaled"},
       {NormPlacement::mix, "mix"},
       {NormPlacement::hybrid, "hybrid"},
       {NormPlacement::hybrid_star, "hybrid_star"},
       {NormPlacement::keel, "keel"},
       {NormPlacement::parallel, "parallel"},
       {NormPlacement::ngpt, "ngpt"}});
};

/// The parts of an encoder-decoder, or of a stack alone, that initial values depend on.
enum class StackRole { alone, encoder, decoder };

template <>
struct EnumNames<StackRole> {
  static constexpr const char* type = "StackRole";
  static constexpr auto values =
      std::to_array<std::pair<StackRole, std::string_view>>({{StackRole::alone, "alone"},
                                                             {StackRole::encoder, "encoder"},
                                                             {StackRole::decoder, "decoder"}});
};

/// What a placement may depend on.
struct PlacementContext {
  NormKind norm = NormKind::layer_norm;
  std::int64_t d_model = 0;
  std::optional<double> eps = std::nullopt;
  std::int64_t layer = 0;       ///< index of the block in its stack
  std::int64_t num_layers = 1;  ///< of the stack
  StackRole role = StackRole::alone;
  std::int64_t other_layers = 0;  ///< of the other stack, where there is one
  std::size_t sublayers = 2;      ///< of a block: 3 with cross-attention
  double mix_share = 0.25;        ///< Mix-LN: share of the blocks that are post
  bool res_scale = false;         ///< NormFormer: a gain for each channel of the last residual
  bool pb_relax = false;  ///< sandwich: x / (max |x| / 8) before each norm, against overflow
  /// ResiDual: where the blocks of one stack sum what their sublayers give. Null: a block alone.
  std::shared_ptr<Tensor> accumulated = nullptr;
};

/// A sublayer with its dropout: what is added to the residual stream.
using Sublayer = std::function<Tensor(const Tensor&)>;

/// How the residual stream passes the sublayers of a block: one or two attentions, and last the
/// feed-forward.
class Placement {
 public:
  struct NamedPart {
    std::string name;
    std::unique_ptr<Norm> part;
  };

  virtual ~Placement() = default;
  /// One sublayer after the other, unless a placement has it otherwise.
  virtual Tensor forward(const Tensor& x, const std::vector<Sublayer>& sublayers);
  /// The norms it uses, under the names they have in the block ("norm1").
  const std::vector<NamedPart>& parts() const { return parts_; }

 protected:
  /// The stream behind sublayer `i`, which is f.
  virtual Tensor step(std::size_t i, const Tensor& x, const Sublayer& f) = 0;
  Norm& add_norm(const std::string& name, const PlacementContext& context);
  /// "norm1", "norm2", …: one for each sublayer.
  std::vector<Norm*> add_norms(const std::string& prefix, const PlacementContext& context);
  Norm& add_part(const std::string& name, std::unique_ptr<Norm> part);

 private:
  std::vector<NamedPart> parts_;
};

std::unique_ptr<Placement> make_placement(NormPlacement placement, const PlacementContext& context);
/// Whether a stack of such blocks leaves an unnormalized stream and so needs a norm at its end.
bool needs_final_norm(NormPlacement placement);
/// Whether the stack normalizes what enters it.
bool needs_input_norm(NormPlacement placement);

/// What a placement wants inside of the sublayers of block `layer`.
struct SublayerNorms {
  bool inner = false;       ///< a norm before fc2 or down_proj
  bool heads = false;       ///< a norm of the concatenated heads before o_proj
  bool head_scale = false;  ///< a gain for each head before o_proj
  bool qkv = false;         ///< RMSNorm of the heads of queries, keys and values
  bool unit = false;        ///< nGPT: unit queries and keys after the rotation, learned scales
};
SublayerNorms sublayer_norms(NormPlacement placement);

/// alpha multiplies the residual of DeepNorm; beta the initial values of fc1, fc2, v_proj and
/// o_proj (not of q_proj, k_proj), which are those of nn::Linear as in torchscale (the paper has
/// Xavier's). N encoder and M decoder layers; `alone` is an encoder or a
/// decoder of N layers without the other:
///   alone:   alpha = (2 N)^(1/4), beta = (8 N)^(-1/4)
///   encoder: alpha = 0.81 (N^4 M)^(1/16), beta = 0.87 (N^4 M)^(-1/16)
///   decoder: alpha = (3 M)^(1/4), beta = (12 M)^(-1/4)
struct DeepNormConstants {
  double alpha, beta;
};
DeepNormConstants deep_norm_constants(StackRole role, std::int64_t encoder_layers,
                                      std::int64_t decoder_layers = 0);
/// The gain of SubLN on the same parameters: sqrt(ln 2N) alone, sqrt(ln(3M) ln(2N) / 3) for the
/// encoder and sqrt(ln 3M) for the decoder of an encoder-decoder (its cross-attention left out).
double sub_ln_gain(StackRole role, std::int64_t encoder_layers, std::int64_t decoder_layers = 0);
/// What a placement multiplies the initial values of fc1 (gate_proj, up_proj), fc2 (down_proj),
/// v_proj and o_proj by; 1 for most. Not those of cross-attention with SubLN.
double residual_gain(NormPlacement placement, std::int64_t num_layers,
                     StackRole role = StackRole::alone, std::int64_t other_layers = 0);

}  // namespace norma::nn
