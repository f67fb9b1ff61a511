// MultiheadAttention: self-attention with grouped key-value heads, rotary positions, QK-norm and
// soft cap.
#pragma once

#include "norma/nn/kv_cache.h"
#include "norma/nn/linear.h"
#include "norma/nn/norm.h"
#include "norma/nn/qk_norm.h"
#include "norma/ops/rope.h"

namespace norma::nn {

struct AttentionConfig {
  std::int64_t d_model = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;  ///< heads of keys and values; 0: num_heads; 1: multi-query
  std::int64_t head_dim = 0;      ///< 0: d_model / num_heads
  bool causal = false;            ///< query i sees keys 0 … i
  bool rope =
      false;  ///< rotate queries and keys by their position (Su et al. 2021; halves, as HF Llama)
  double rope_theta = 10000.0;
  NormKind qk_norm =
      NormKind::none;  ///< over head_dim of queries and keys, before the rotation, as in Qwen3
  QKNorm qk_form = QKNorm::none;  ///< a published form instead of qk_norm
  double qk_norm_eps = 1e-6;
  std::int64_t qk_groups = 1;            ///< parts of a head that QKNorm::l2 normalizes
  std::int64_t qk_length = 512;          ///< usual length, from which QKNorm::henry starts its g
  NormKind inner_norm = NormKind::none;  ///< of the concatenated heads, before o_proj: SubLN
  std::optional<double> inner_norm_eps = std::nullopt;
  bool head_scale = false;  ///< a learned gain for each head, before o_proj: NormFormer
  double softcap = 0.0;     ///< cap * tanh(score / cap), as in Gemma 2; 0: off
  double dropout = 0.0;     ///< on the attention probabilities
  bool bias = true;         ///< of the four projections

  /// With the zeros replaced by what they stand for; throws ValueError that names the fields.
  AttentionConfig resolved() const;
};

/// x [batch, length, d_model] to the same shape: o_proj(softmax(q k^T / sqrt(head_dim)) v) for each
/// head. With `memory` [batch, memory_length, d_model], keys and values are those of the memory and
/// key_padding_mask is its mask: cross-attention. Parameters are named as HF Llama names them:
/// q_proj, k_proj, v_proj, o_proj, q_norm, k_norm.
///
/// `key_padding_mask` [batch, length] bool: true = no query sees this position. A query that sees
/// no key gets zeros.
///
/// With a `cache` x continues the positions that the cache holds, and the cache takes it up; for
/// causal attention, without a mask.
///
/// Errors: ValueError that names the fields; ShapeError, DTypeError for inputs; those of
/// KeyValueCache.
class MultiheadAttention : public Layer<MultiheadAttention> {
 public:
  explicit MultiheadAttention(const AttentionConfig& config);
  Tensor forward(const Tensor& x, const Tensor& key_padding_mask = {},
                 KeyValueCache* cache = nullptr, const Tensor& memory = {});
  /// What the softmax of forward(x) takes, [batch, num_heads, length, length]: scaled, capped, and
  /// -inf where a causal query may not look. For observers (nn/monitor.h): forward keeps no such
  /// matrix.
  Tensor scores(const Tensor& x);
  std::string extra_repr() const override;

  const AttentionConfig config;  ///< with the zeros resolved
  Linear q_proj, k_proj, v_proj, o_proj;
  AnyNorm q_norm, k_norm, v_norm;     ///< null without qk_norm and qk_form
  Tensor qk_scale;                    ///< g of QKNorm::henry, [1]; else undefined
  AnyNorm head_scale, inner_attn_ln;  ///< null without them

 private:
  struct QueriesKeys {
    Tensor q, k;  ///< [batch, heads, length, head_dim], normalized and rotated
  };
  void add_qk_norms();
  /// Queries of x, keys of source (x, or the memory), whose tokens stand behind `past` others.
  QueriesKeys queries_keys(const Tensor& x, const Tensor& source, std::int64_t past);
  /// [batch, length, heads * head_dim] to [batch, heads, length, head_dim], normalized where there
  /// is a norm.
  Tensor split_heads(const Tensor& x, std::int64_t heads, const AnyNorm& norm) const;
  /// The rotation of positions `offset` … offset + length - 1.
  Tensor rotate(const Tensor& x, std::int64_t offset);

  RopeTables rope_tables_;  ///< for the longest text so far
};

}  // namespace norma::nn
