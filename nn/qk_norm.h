// QK-norm: the published ways to normalize queries and keys (some of them values, too).
#pragma once

#include "norma/nn/norm.h"

namespace norma::nn {

/// Which normalizer, over which axis, with weights of which shape, and what scales the scores. An
/// open set. H heads of width D; unless said otherwise over D, before the rotation, with scores
/// times 1 / sqrt(D).
enum class QKNorm {
  none,
  henry,  ///< unit vectors; scores times one learned g, at first log2(L^2 - L): Henry et al. 2020
  l2,     ///< unit vectors (of `groups` parts of a head); scores times 10: x-transformers qk_norm
  l2_learned,  ///< the same with gains [H, D], at first D^(1/4), and scores as they are
  head_rms,    ///< SimpleRMSNorm with gains 1 + [H, D]: x-transformers qk_rmsnorm
  vit22b,      ///< LayerNorm without bias: ViT-22B
  cohere,      ///< LayerNorm with weights [H, D], no bias: Command R
  chameleon,   ///< the same with biases [H, D]: Chameleon
  qwen3,       ///< RMSNorm with one weight [D] for all heads: Qwen 3
  gemma3,      ///< the same with gain 1 + weight: Gemma 3
  olmo2,       ///< RMSNorm over the whole projection [H D], before the split into heads: OLMo 2
  hybrid,      ///< RMSNorm with one weight [D] of queries, keys and values: HybridNorm
  ngpt,  ///< unit vectors times learned gains [H, D], after the rotation; scores times sqrt(D)
};

template <>
struct EnumNames<QKNorm> {
  static constexpr const char* type = "QKNorm";
  static constexpr auto values =
      std::to_array<std::pair<QKNorm, std::string_view>>({{QKNorm::none, "none"},
                                                          {QKNorm::henry, "henry"},
                                                          {QKNorm::l2, "l2"},
                                                          {QKNorm::l2_learned, "l2_learned"},
                                                          {QKNorm::head_rms, "head_rms"},
                                                          {QKNorm::vit22b, "vit22b"},
                                                          {QKNorm::cohere, "cohere"},
                                                          {QKNorm::chameleon, "chameleon"},
                                                          {QKNorm::qwen3, "qwen3"},
                                                          {QKNorm::gemma3, "gemma3"},
                                                          {QKNorm::olmo2, "olmo2"},
                                                          {QKNorm::hybrid, "hybrid"},
                                                          {QKNorm::ngpt, "ngpt"}});
};

/// Where a normalizer stands in attention.
enum class QKStage {
  projection,  ///< on [batch, length, heads * head_dim]
  heads,       ///< on [batch, length, heads, head_dim]
  rotated,     ///< on [batch, heads, length, head_dim], after the rotation
};
QKStage qk_stage(QKNorm form);
/// Whether values are normalized as keys are.
bool normalizes_values(QKNorm form);
/// Factor of the scores; absent: the usual 1 / sqrt(head_dim).
std::optional<double> qk_score_scale(QKNorm form, std::int64_t head_dim);

struct QKNormShape {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t d_model = 0;
  std::int64_t groups = 1;  ///< of l2
  double eps = 1e-6;        ///< of the norms that have one
};
/// The normalizer of queries (or keys, or values) of this form; not for `none`.
AnyNorm make_qk_norm(QKNorm form, const QKNormShape& shape);

}  // namespace norma::nn
