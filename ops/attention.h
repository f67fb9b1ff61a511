// Scaled dot-product attention.
#pragma once

#include "norma/core/tensor.h"

#include <optional>

namespace norma {

/// Options of scaled_dot_product_attention(), PyTorch's first.
struct AttentionOptions {
  /// Broadcasts to [B, Hq, Lq, Lk]. bool: true takes part; floating point: added to the scores.
  Tensor attn_mask = {};
  /// Probability that an attention weight is dropped. Applied whenever it is not 0: pass 0 when
  /// evaluating.
  double dropout_p = 0.0;
  /// Query i sees keys j <= i, also for Lq != Lk: aligned at the first query and key, as PyTorch
  /// does. With a key-value cache say by attn_mask which keys the later queries see (all, if there
  /// is one query).
  bool is_causal = false;
  /// Factor of the scores; default 1 / sqrt(D).
  std::optional<double> scale = std::nullopt;
  /// Allow fewer key and value heads: each serves Hq / Hkv adjacent query heads.
  bool enable_gqa = false;
  /// bool [B, Lk], true = ignore this key, as key_padding_mask of torch.nn.MultiheadAttention.
  Tensor key_padding_mask = {};
  /// Soft cap of the scores before the masks: cap * tanh(score / cap), as in Gemma 2; 0: none.
  double softcap = 0.0;
};

/// softmax(scale query key^T + mask) value. As torch.nn.functional.scaled_dot_product_attention.
///
/// query [B, Hq, Lq, D], key [B, Hkv, Lk, D], value [B, Hkv, Lk, Dv] -> [B, Hq, Lq, Dv]; or all
/// without the head dimension. One floating-point dtype; computed in float32 (float64 for float64).
/// Heads may be views split from a projection, `[B, L, H, D].transpose(1, 2)`: they are not copied,
/// and the result has their memory order.
///
/// Fused: no Lq x Lk matrix is kept. Backward recomputes the weights from the log-sum-exp of each
/// row, and the dropout mask from the random counter. Blocks that causality masks and leading or
/// trailing padding keys are skipped.
///
/// A query that sees no key at all gives zeros and gradient zero (PyTorch's plain softmax gives
/// NaN). Beyond PyTorch: is_causal combines with attn_mask; key_padding_mask and softcap are
/// additions.
///
/// Gradients for query, key, value; also for attn_mask where it requires grad (then the composite
/// runs, which keeps Lq x Lk matrices). Sums over the query heads of a group run in a fixed order.
///
/// Throws ShapeError, DTypeError, DeviceError where operands do not fit; ValueError for dropout_p
/// outside of [0, 1], softcap < 0 or scale not finite.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options = {});

namespace composite {
/// The definition of norma::scaled_dot_product_attention in elementary operations, with the same
/// dropout mask from the same state of the generator.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options = {});
}  // namespace composite

}  // namespace norma
