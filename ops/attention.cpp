#include "norma/ops/attention.h"

#include <cmath>
#include <limits>

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/ops/backend.h"
#include "norma/ops/cast.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/layout.h"
#include "norma/ops/matmul.h"
#include "norma/ops/softmax.h"
#include "norma/ops/view.h"

namespace norma {

namespace {

constexpr const char* op = "scaled_dot_product_attention";
constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// One call in the form of the kernels: four dimensions, an added mask, the defaults filled in.
struct Call {
  Tensor query, key, value;
  Tensor mask = {};              ///< added, expanded to [B, Hq, Lq, Lk]; or undefined
  Tensor key_padding_mask = {};  ///< [B, Lk]; or undefined
  AttentionParams params = {};
  bool without_heads = false;  ///< the caller's tensors have no head dimension
};

void check_inputs(const Tensor& query, const Tensor& key, const Tensor& value,
                  const AttentionOptions& options) {
  check<ValueError>(query.defined() && key.defined() && value.defined(), op,
                    "query, key and value must be defined; got an undefined tensor");
  check<DTypeError>(query.is_floating_point(), op,
                    "query must be floating point; got {}; convert with .to(float32)",
                    query.dtype());
  check<DTypeError>(
      key.dtype() == query.dtype() && value.dtype() == query.dtype(), op,
      "query, key and value must have one dtype; got {}, {} and {}; convert with .to(…)",
      query.dtype(), key.dtype(), value.dtype());
  check<DeviceError>(
      key.device() == query.device() && value.device() == query.device(), op,
      "query, key and value must be on one device; got {}, {} and {}; move them with "
      ".to(device)",
      query.device(), key.device(), value.device());
  const std::int64_t rank = query.dim();
  check<ShapeError>((rank == 3 || rank == 4) && key.dim() == rank && value.dim() == rank, op,
                    "query, key and value must all be [batch, heads, length, width], or all "
                    "[batch, length, width]; got {}, {} and {}",
                    query.shape(), key.shape(), value.shape());
  check<ShapeError>(key.size(0) == query.size(0) && value.size(0) == query.size(0), op,
                    "query, key and value must have one batch size; got {}, {} and {}",
                    query.shape(), key.shape(), value.shape());
  check<ShapeError>(query.size(-1) == key.size(-1) && query.size(-1) > 0, op,
                    "query and key must have one width, at least 1; got {} and {}", query.shape(),
                    key.shape());
  check<ShapeError>(key.size(-2) == value.size(-2), op,
                    "key and value must have one length; got {} and {}", key.shape(),
                    value.shape());
  if (rank == 4) {
    check<ShapeError>(key.size(1) == value.size(1), op,
                      "key and value must have the same heads; got {} and {}", key.shape(),
                      value.shape());
    const std::int64_t heads = query.size(1), kv_heads = key.size(1);
    check<ShapeError>(
        heads == kv_heads || options.enable_gqa, op,
        "query and key must have the same heads; got {} and {}; set .enable_gqa = true "
        "for grouped heads",
        heads, kv_heads);
    check<ShapeError>(
        heads == kv_heads || (kv_heads > 0 && heads % kv_heads == 0), op,
        "the number of query heads must be a multiple of that of key heads; got {} and {}", heads,
        kv_heads);
  }
  check<ValueError>(options.dropout_p >= 0.0 && options.dropout_p <= 1.0, op,
                    "dropout_p must be in [0, 1]; got {}", options.dropout_p);
  check<ValueError>(options.softcap >= 0.0 && std::isfinite(options.softcap), op,
                    "softcap must be positive, or 0 for none; got {}", options.softcap);
  check<ValueError>(!options.scale || std::isfinite(*options.scale), op,
                    "scale must be finite; got {}", options.scale.value_or(0.0));
}

/// attn_mask as something to add, expanded to `scores`; differentiable.
Tensor additive_mask(const Tensor& given, const Tensor& query, const Shape& scores,
                     bool without_heads) {
  check<DeviceError>(given.device() == query.device(), op,
                     "attn_mask must be on the device of query, {}; got {}", query.device(),
                     given.device());
  check<DTypeError>(given.dtype() == bool_ || given.is_floating_point(), op,
                    "attn_mask must be bool (true = takes part) or floating point (added); got {}",
                    given.dtype());
  const Tensor mask = without_heads && given.dim() == 3 ? given.unsqueeze(1) : given;
  check<ShapeError>(is_expandable_to(mask.shape(), scores), op,
                    "attn_mask must broadcast to the scores {}; got {}", scores, given.shape());
  const Tensor added =
      given.dtype() == bool_
          ? where(mask, zeros({}, {.dtype = query.dtype(), .device = query.device()}),
                  minus_infinity)
          : mask.to(query.dtype());
  return added.expand(scores);
}

Call prepare(const Tensor& query, const Tensor& key, const Tensor& value,
             const AttentionOptions& options) {
  check_inputs(query, key, value, options);
  Call call{.query = query, .key = key, .value = value};
  call.without_heads = query.dim() == 3;
  if (call.without_heads) {
    call.query = query.unsqueeze(1);
    call.key = key.unsqueeze(1);
    call.value = value.unsqueeze(1);
  }
  const Shape scores{call.query.size(0), call.query.size(1), call.query.size(2), call.key.size(2)};
  if (options.attn_mask.defined())
    call.mask = additive_mask(options.attn_mask, call.query, scores, call.without_heads);
  if (options.key_padding_mask.defined()) {
    const Tensor& padding = options.key_padding_mask;
    check<DTypeError>(padding.dtype() == bool_, op,
                      "key_padding_mask must be bool, true = ignore this key; got {}",
                      padding.dtype());
    check<ShapeError>(padding.shape() == Shape({scores[0], scores[3]}), op,
                      "key_padding_mask must be [batch, key length] = [{}, {}]; got {}", scores[0],
                      scores[3], padding.shape());
    check<DeviceError>(padding.device() == query.device(), op,
                       "key_padding_mask must be on the device of query, {}; got {}",
                       query.device(), padding.device());
    call.key_padding_mask = padding;
  }
  call.params.scale = options.scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(-1))));
  call.params.softcap = options.softcap;
  call.params.dropout_p = options.dropout_p;
  call.params.causal = options.is_causal;
  if (options.dropout_p > 0.0)
    call.params.philox = default_generator(query.device()).reserve(scores.numel());
  return call;
}

// -- the definition -----------------------------------------------------------------------------

/// Each key or value head once for every query head that it serves.
Tensor repeat_heads(const Tensor& x, std::int64_t heads) {
  const Shape& s = x.shape();
  if (s[1] == heads) return x;
  return x.unsqueeze(2)
      .expand({s[0], s[1], heads / s[1], s[2], s[3]})
      .reshape({s[0], heads, s[2], s[3]});
}

/// Which query sees which key, broadcasting to the scores; undefined: every one.
Tensor visible_keys(const Call& call, const Tensor& scores) {
  const std::int64_t queries = scores.size(2), keys = scores.size(3);
  Tensor visible;
  const auto restrict_to = [&](const Tensor& condition) {
    visible = visible.defined() ? logical_and(visible, condition) : condition;
  };
  if (call.params.causal) {
    const TensorOptions options{.device = scores.device()};
    const Tensor last = arange(static_cast<double>(queries), options).unsqueeze(1);
    restrict_to(le(arange(static_cast<double>(keys), options), last));
  }
  if (call.key_padding_mask.defined())
    restrict_to(logical_not(call.key_padding_mask).unsqueeze(1).unsqueeze(1));
  if (call.mask.defined()) restrict_to(ne(call.mask.detach(), minus_infinity));
  return visible;
}

Tensor define(const Call& call) {
  const AttentionParams& params = call.params;
  const std::int64_t heads = call.query.size(1);
  const Tensor key = repeat_heads(call.key, heads), value = repeat_heads(call.value, heads);
  Tensor scores = matmul(call.query, key.transpose(-2, -1)) * params.scale;
  if (params.softcap > 0.0) scores = tanh(scores * (1.0 / params.softcap)) * params.softcap;
  if (call.mask.defined()) scores = scores + call.mask;
  Tensor row_sees_a_key;
  if (const Tensor visible = visible_keys(call, scores); visible.defined()) {
    // A row of -inf alone would make NaN in the softmax, and in its backward.
    row_sees_a_key = visible.to(float32).sum({-1}, true) > 0.0;
    scores = where(row_sees_a_key, where(visible, scores, minus_infinity), 0.0);
  }
  Tensor weights = softmax(scores, -1);
  if (row_sees_a_key.defined()) weights = where(row_sees_a_key, weights, 0.0);
  if (params.dropout_p > 0.0) {
    const Tensor keep =
        empty(weights.shape(), {.dtype = weights.dtype(), .device = weights.device()});
    if (keep.numel() > 0)
      backend(keep).dropout(ones_like(keep), params.dropout_p, params.philox, keep);
    weights = weights * keep;
  }
  return matmul(weights, value);
}

// -- the fused operation ------------------------------------------------------------------------

struct Attention : Function<Attention> {
  static constexpr const char* name = op;

  static Tensor forward(Context& ctx, const Tensor& query, const Tensor& key, const Tensor& value,
                        const Tensor& mask, const Tensor& key_padding_mask,
                        const AttentionParams& params) {
    const Tensor q = detail::with_adjacent_columns(query);
    const Tensor out = output_for(q, value.size(3));
    const Tensor logsumexp =
        empty({q.size(0), q.size(1), q.size(2)},
              {.dtype = q.dtype() == float64 ? float64 : float32, .device = q.device()});
    if (out.numel() > 0)
      backend(q).attention(q, detail::with_adjacent_columns(key),
                           detail::with_adjacent_columns(value), mask, packed(key_padding_mask),
                           params, out, logsumexp);
    if (ctx.is_recording()) {
      ctx.save_for_backward({query, key, value, mask, key_padding_mask, out, logsumexp});
      ctx.set("params", params);
    }
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor mask = saved[3], padding = saved[4];
    const auto params = ctx.get<AttentionParams>("params");
    if (GradMode::is_enabled()) {
      TensorList grads = composite_backward(
          [=](const TensorList& x) {
            return TensorList{define({x[0], x[1], x[2], mask, padding, params})};
          },
          {saved[0], saved[1], saved[2]}, {grad_output});
      grads.resize(5);
      return grads;
    }
    TensorList inputs, grads(5);
    for (std::size_t i = 0; i < 3; ++i) {
      inputs.push_back(detail::with_adjacent_columns(saved[i]));
      if (ctx.needs_input_grad(i)) grads[i] = detail::empty_in_order_of(inputs[i]);
    }
    if (saved[5].numel() > 0) {
      backend(inputs[0]).attention_backward(
          inputs[0], inputs[1], inputs[2], mask, packed(padding), params, saved[5], saved[6],
          detail::with_adjacent_columns(grad_output), grads[0], grads[1], grads[2]);
    } else {
      for (const Tensor& grad : grads)
        if (grad.defined()) grad.zero_();
    }
    return grads;
  }

 private:
  static Tensor packed(const Tensor& x) { return x.defined() ? x.contiguous() : x; }

  /// [B, H, L, width] in the memory order of q.
  static Tensor output_for(const Tensor& q, std::int64_t width) {
    if (width == q.size(3)) return detail::empty_in_order_of(q);
    return empty({q.size(0), q.size(1), q.size(2), width},
                 {.dtype = q.dtype(), .device = q.device()});
  }
};

Tensor finish(const Call& call, const Tensor& out) {
  return call.without_heads ? out.squeeze(1) : out;
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options) {
  const Call call = prepare(query, key, value, options);
  if (call.mask.defined() && call.mask.requires_grad() && GradMode::is_enabled())
    return finish(call, define(call));
  return finish(call, Attention::apply(call.query, call.key, call.value, call.mask,
                                       call.key_padding_mask, call.params));
}

namespace composite {

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options) {
  const Call call = prepare(query, key, value, options);
  return finish(call, define(call));
}

}  // namespace composite

}  // namespace norma
