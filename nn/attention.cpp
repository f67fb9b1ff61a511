#include "norma/nn/attention.h"

#include "norma/core/factory.h"
#include "norma/nn/point_norms.h"
#include "norma/ops/attention.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/point_norm.h"
#include "norma/ops/rope.h"

#include <cmath>
#include <limits>
#include <tuple>

namespace norma::nn {

namespace {

/// Which of `keys` positions each of the last `queries` sees: bool [queries, keys].
Tensor causal_mask(std::int64_t queries, std::int64_t keys, const Device& device) {
  const TensorOptions options{.dtype = int64, .device = device};
  const Tensor query =
      arange(static_cast<double>(keys - queries), static_cast<double>(keys), 1.0, options);
  return arange(static_cast<double>(keys), options) <= query.unsqueeze(1);
}

Tensor normalized(const AnyNorm& norm, const Tensor& x) { return norm ? (*norm)(x) : x; }

}  // namespace

AttentionConfig AttentionConfig::resolved() const {
  constexpr const char* name = "MultiheadAttention";
  AttentionConfig c = *this;
  check<ValueError>(c.d_model > 0 && c.num_heads > 0, name,
                    "d_model and num_heads must be positive; got d_model = {}, num_heads = {}",
                    c.d_model, c.num_heads);
  if (c.num_kv_heads == 0) c.num_kv_heads = c.num_heads;
  check<ValueError>(c.num_kv_heads > 0 && c.num_heads % c.num_kv_heads == 0, name,
                    "num_kv_heads must divide num_heads; got num_heads = {}, num_kv_heads = {}",
                    c.num_heads, c.num_kv_heads);
  if (c.head_dim == 0) {
    check<ValueError>(c.d_model % c.num_heads == 0, name,
                      "num_heads must divide d_model; got d_model = {}, num_heads = {}", c.d_model,
                      c.num_heads);
    c.head_dim = c.d_model / c.num_heads;
  }
  check<ValueError>(c.head_dim > 0, name, "head_dim must be positive; got {}", c.head_dim);
  check<ValueError>(!c.rope || c.head_dim % 2 == 0, name,
                    "rope needs an even head_dim; got head_dim = {} (d_model = {}, num_heads = {})",
                    c.head_dim, c.d_model, c.num_heads);
  check<ValueError>(!c.rope || c.rope_theta > 0.0, name, "rope_theta must be positive; got {}",
                    c.rope_theta);
  check<ValueError>(c.softcap >= 0.0, name, "softcap must be positive, or 0 for none; got {}",
                    c.softcap);
  check<ValueError>(c.qk_norm == NormKind::none || c.qk_form == QKNorm::none, name,
                    "qk_norm and qk_form must not both be given; got {} and {}",
                    to_string(c.qk_norm), to_string(c.qk_form));
  check<ValueError>(c.qk_length > 1, name, "qk_length must be greater than 1; got {}", c.qk_length);
  check<ValueError>(c.dropout >= 0.0 && c.dropout <= 1.0, name, "dropout must be in [0, 1]; got {}",
                    c.dropout);
  return c;
}

MultiheadAttention::MultiheadAttention(const AttentionConfig& options)
    : config(options.resolved()),
      q_proj(config.d_model, config.num_heads * config.head_dim, config.bias),
      k_proj(config.d_model, config.num_kv_heads * config.head_dim, config.bias),
      v_proj(config.d_model, config.num_kv_heads * config.head_dim, config.bias),
      o_proj(config.num_heads * config.head_dim, config.d_model, config.bias) {
  register_module("q_proj", q_proj);
  register_module("k_proj", k_proj);
  register_module("v_proj", v_proj);
  register_module("o_proj", o_proj);
  add_qk_norms();
  if (config.head_scale) {
    head_scale = std::make_unique<HeadScale>(config.num_heads);
    register_module("head_scale", *head_scale);
  }
  if (config.inner_norm != NormKind::none) {
    inner_attn_ln =
        make_norm(config.inner_norm, config.num_heads * config.head_dim, config.inner_norm_eps);
    register_module("inner_attn_ln", *inner_attn_ln);
  }
}

void MultiheadAttention::add_qk_norms() {
  if (config.qk_norm == NormKind::none && config.qk_form == QKNorm::none) return;
  const auto make = [this](std::int64_t heads) {
    if (config.qk_norm != NormKind::none)
      return make_norm(config.qk_norm, config.head_dim, config.qk_norm_eps);
    return make_qk_norm(config.qk_form, {.heads = heads,
                                         .head_dim = config.head_dim,
                                         .d_model = config.d_model,
                                         .groups = config.qk_groups,
                                         .eps = config.qk_norm_eps});
  };
  q_norm = make(config.num_heads);
  k_norm = make(config.num_kv_heads);
  register_module("q_norm", *q_norm);
  register_module("k_norm", *k_norm);
  if (normalizes_values(config.qk_form)) {
    v_norm = make(config.num_kv_heads);
    register_module("v_norm", *v_norm);
  }
  if (config.qk_form == QKNorm::henry) {
    const auto length = static_cast<double>(config.qk_length);
    qk_scale = full({1}, std::log2(length * length - length));
    register_parameter("qk_scale", qk_scale, ParameterKind::scalar);
  }
}

Tensor MultiheadAttention::split_heads(const Tensor& x, std::int64_t heads,
                                       const AnyNorm& norm) const {
  const Tensor split = x.view({x.size(0), x.size(1), heads, config.head_dim});
  return (norm ? (*norm)(split) : split).transpose(1, 2);
}

Tensor MultiheadAttention::rotate(const Tensor& x, std::int64_t offset) {
  const std::int64_t length = x.size(2), end = offset + length;
  const DType dtype = x.dtype() == float64 ? float64 : float32;
  const bool usable = rope_tables_.cos.defined() && rope_tables_.cos.size(0) >= end &&
                      rope_tables_.cos.dtype() == dtype && rope_tables_.cos.device() == x.device();
  // Decoding asks for one position more each time: tables for some to come.
  if (!usable)
    rope_tables_ = rope_tables(offset > 0 ? 2 * end : end, config.head_dim, config.rope_theta, 0,
                               {.dtype = dtype, .device = x.device()});
  return apply_rope(x, rope_tables_.cos.narrow(0, offset, length),
                    rope_tables_.sin.narrow(0, offset, length));
}

MultiheadAttention::QueriesKeys MultiheadAttention::queries_keys(const Tensor& x,
                                                                 const Tensor& source,
                                                                 std::int64_t past) {
  const QKStage stage = qk_stage(config.qk_form);
  const AnyNorm none;
  const auto at = [&](QKStage wanted, const AnyNorm& norm) -> const AnyNorm& {
    return stage == wanted ? norm : none;
  };
  Tensor q = split_heads(normalized(at(QKStage::projection, q_norm), q_proj(x)), config.num_heads,
                         at(QKStage::heads, q_norm));
  Tensor k = split_heads(normalized(at(QKStage::projection, k_norm), k_proj(source)),
                         config.num_kv_heads, at(QKStage::heads, k_norm));
  if (config.rope) {
    q = rotate(q, past);
    k = rotate(k, past);
  }
  q = normalized(at(QKStage::rotated, q_norm), q);
  k = normalized(at(QKStage::rotated, k_norm), k);
  if (qk_scale.defined()) q = q * qk_scale;
  return {q, k};
}

Tensor MultiheadAttention::forward(const Tensor& x, const Tensor& key_padding_mask,
                                   KeyValueCache* cache, const Tensor& memory) {
  check<ShapeError>(x.dim() == 3 && x.size(2) == config.d_model, "MultiheadAttention",
                    "x must be [batch, length, d_model = {}]; got {}", config.d_model, x.shape());
  if (memory.defined()) {
    check<ShapeError>(
        memory.dim() == 3 && memory.size(0) == x.size(0) && memory.size(2) == config.d_model,
        "MultiheadAttention", "memory must be [batch = {}, length, d_model = {}]; got {}",
        x.size(0), config.d_model, memory.shape());
    check<ValueError>(!config.causal && cache == nullptr, "MultiheadAttention",
                      "memory must be seen as a whole: without causal and cache; got {}",
                      config.causal ? "causal = true" : "a cache");
  }
  const Tensor& source = memory.defined() ? memory : x;
  if (key_padding_mask.defined())
    check<ShapeError>(key_padding_mask.shape() == Shape{source.size(0), source.size(1)},
                      "MultiheadAttention",
                      "key_padding_mask must be [batch, length] of {} {}; got {}",
                      memory.defined() ? "memory" : "x", source.shape(), key_padding_mask.shape());
  check<ValueError>(cache == nullptr || (config.causal && !key_padding_mask.defined()),
                    "MultiheadAttention",
                    "a cache must be that of causal attention without key_padding_mask; got {}",
                    config.causal ? "a mask" : "causal = false");
  const std::int64_t past = cache != nullptr ? cache->length() : 0;
  auto [q, k] = queries_keys(x, source, past);
  Tensor v = split_heads(v_proj(source), config.num_kv_heads, v_norm);
  if (cache != nullptr) std::tie(k, v) = cache->append(k, v);
  // is_causal counts from the first key. One query behind the cache sees all there is.
  Tensor mask;
  if (past > 0 && q.size(2) > 1) mask = causal_mask(q.size(2), k.size(2), x.device());
  const Tensor heads =
      scaled_dot_product_attention(q, k, v,
                                   {.attn_mask = mask,
                                    .dropout_p = is_training() ? config.dropout : 0.0,
                                    .is_causal = config.causal && past == 0,
                                    .scale = qk_score_scale(config.qk_form, config.head_dim),
                                    .enable_gqa = config.num_kv_heads != config.num_heads,
                                    .key_padding_mask = key_padding_mask,
                                    .softcap = config.softcap});
  // Back to [batch, length, heads * head_dim]: a view, since attention keeps the memory order of q.
  Tensor joined =
      heads.transpose(1, 2).reshape({x.size(0), x.size(1), config.num_heads * config.head_dim});
  return o_proj(normalized(inner_attn_ln, normalized(head_scale, joined)));
}

Tensor MultiheadAttention::scores(const Tensor& x) {
  check<ShapeError>(x.dim() == 3 && x.size(2) == config.d_model, "MultiheadAttention",
                    "x must be [batch, length, d_model = {}]; got {}", config.d_model, x.shape());
  auto [q, k] = queries_keys(x, x, 0);
  const std::int64_t batch = x.size(0), length = x.size(1);
  const std::int64_t served = config.num_heads / config.num_kv_heads;
  k = k.unsqueeze(2)
          .expand({batch, config.num_kv_heads, served, length, config.head_dim})
          .reshape({batch, config.num_heads, length, config.head_dim});
  const double usual = 1.0 / std::sqrt(static_cast<double>(config.head_dim));
  Tensor scores = q.matmul(k.transpose(-2, -1)) *
                  qk_score_scale(config.qk_form, config.head_dim).value_or(usual);
  if (config.softcap > 0.0) scores = softcap(scores, config.softcap);
  if (!config.causal) return scores;
  const Tensor hidden = logical_not(causal_mask(length, length, x.device()));
  return masked_fill(scores, hidden, -std::numeric_limits<double>::infinity());
}

std::string MultiheadAttention::extra_repr() const {
  std::string text = fmt::format("d_model={}, num_heads={}", config.d_model, config.num_heads);
  if (config.num_kv_heads != config.num_heads)
    text += fmt::format(", num_kv_heads={}", config.num_kv_heads);
  if (config.causal) text += ", causal=True";
  if (config.rope) text += fmt::format(", rope_theta={}", config.rope_theta);
  if (config.softcap > 0.0) text += fmt::format(", softcap={}", config.softcap);
  if (config.dropout > 0.0) text += fmt::format(", dropout={}", config.dropout);
  return text;
}

}  // namespace norma::nn
