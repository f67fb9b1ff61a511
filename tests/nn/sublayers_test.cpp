// What stands inside of attention and feed-forward, each against its formula: the forms of QK-norm,
// head scale, inner norms, the gains of nGPT, cross-attention.
#include "support/catch.h"
#include "support/compare.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/nn/transformer.h"
#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/index.h"
#include "norma/ops/matmul.h"
#include "norma/ops/norm.h"
#include "norma/ops/poly_norm.h"
#include "norma/ops/reduction.h"
#include "norma/ops/rope.h"
#include "norma/ops/softmax.h"
#include "norma/ops/view.h"

#include <cmath>

namespace norma::nn {
namespace {

using test::allclose;
using test::random;

const test::Tolerance tight{1e-9, 1e-11};
constexpr double eps = 0.1;  // large enough to be seen

/// In float64, with values of its own in every parameter.
template <class Layer>
Layer& moved(Layer& layer) {
  const NoGradGuard no_grad;
  layer.to(float64);
  std::uint64_t seed = 100;
  for (const Tensor& parameter : layer.parameters())
    parameter.copy_(random(parameter.shape(), ++seed, -1.0, 1.0));
  return layer;
}

Tensor unit(const Tensor& h) { return h / square(h).sum({-1}, true).sqrt(); }
Tensor rms(const Tensor& h) { return h * rsqrt(square(h).mean({-1}, true) + eps); }
Tensor centred(const Tensor& h) { return layer_norm(h, {h.size(-1)}, {}, {}, eps); }

/// A form of QK-norm: what it learns at first, its normalizer of h [batch, length, heads, head_dim]
/// with weight and bias, and the factor of the scores.
struct Form {
  std::string start;
  std::function<Tensor(const Tensor& h, const Tensor& w, const Tensor& b)> normalized;
  double scale = 0.5;
  bool values = false, rotated = false;
};

constexpr std::int64_t heads = 2, head_dim = 4, width = 6;

const std::map<QKNorm, Form>& forms() {
  using T = const Tensor&;
  static const std::map<QKNorm, Form> all = {
      {QKNorm::none, {"", [](T h, T, T) { return h; }}},
      {QKNorm::henry, {"", [](T h, T, T) { return unit(h); }, 1.0}},
      {QKNorm::l2,
       {"",
        [](T h, T, T) {
          return unit(h.reshape({h.size(0), h.size(1), h.size(2), 2, 2})).reshape(h.shape());
        },
        10.0}},
      {QKNorm::l2_learned, {"scale=1.41", [](T h, T w, T) { return unit(h) * w; }, 1.0}},
      {QKNorm::head_rms, {"gamma=0", [](T h, T w, T) { return 2.0 * unit(h) * (1.0 + w); }}},
      {QKNorm::vit22b, {"weight=1", [](T h, T w, T) { return centred(h) * w; }}},
      {QKNorm::cohere, {"weight=1", [](T h, T w, T) { return centred(h) * w; }}},
      {QKNorm::chameleon, {"weight=1,bias=0", [](T h, T w, T b) { return centred(h) * w + b; }}},
      {QKNorm::qwen3, {"weight=1", [](T h, T w, T) { return rms(h) * w; }}},
      {QKNorm::gemma3, {"weight=0", [](T h, T w, T) { return rms(h) * (1.0 + w); }}},
      {QKNorm::olmo2,
       {"weight=1",
        [](T h, T w, T) {
          return (rms(h.reshape({h.size(0), h.size(1), h.size(2) * h.size(3)})) * w)
              .reshape(h.shape());
        }}},
      {QKNorm::hybrid, {"weight=1", [](T h, T w, T) { return rms(h) * w; }, 0.5, true}},
      {QKNorm::ngpt,
       {"s_qk=0.408", [](T h, T w, T) { return unit(h) * w * std::sqrt(6.0); }, 2.0, false, true}}};
  return all;
}

Tensor rotated(const Tensor& h) {
  return apply_rope(h, rope_tables(h.size(2), head_dim, 10000.0, 0, {.dtype = float64}));
}

/// The heads of attention, joined, from the definition.
Tensor joined_heads(MultiheadAttention& attention, const Tensor& x, const Tensor& memory,
                    const Form& form) {
  const auto split = [](const Tensor& h) {
    return h.view({h.size(0), h.size(1), h.size(2) / head_dim, head_dim});
  };
  const auto normalized = [&](const AnyNorm& norm, const Tensor& h) {
    const TensorList learned = norm ? norm->parameters() : TensorList{};
    return form.normalized(h, learned.empty() ? Tensor() : learned[0],
                           learned.size() < 2 ? Tensor() : learned[1]);
  };
  const auto placed = [&](const AnyNorm& norm, const Tensor& h) {
    const bool rope = attention.config.rope;
    const Tensor early = (form.rotated ? h : normalized(norm, h)).transpose(1, 2);
    const Tensor turned = rope ? rotated(early) : early;
    return form.rotated ? normalized(norm, turned) : turned;
  };
  const auto repeated = [](const Tensor& h) {
    return h.expand({h.size(0), heads, h.size(2), head_dim});
  };
  const Tensor q = placed(attention.q_norm, split(attention.q_proj(x)));
  const Tensor k = repeated(placed(attention.k_norm, split(attention.k_proj(memory))));
  Tensor v = split(attention.v_proj(memory));
  v = repeated((form.values ? normalized(attention.v_norm, v) : v).transpose(1, 2));
  Tensor scores = matmul(q, k.transpose(2, 3)) * form.scale;
  if (attention.qk_scale.defined()) scores = scores * attention.qk_scale;
  return matmul(softmax(scores, -1), v)
      .transpose(1, 2)
      .reshape({x.size(0), x.size(1), heads * head_dim});
}

AttentionConfig attention_config(QKNorm form = QKNorm::none) {
  return {.d_model = width,
          .num_heads = heads,
          .num_kv_heads = 1,
          .head_dim = head_dim,
          .rope = true,
          .qk_form = form,
          .qk_norm_eps = eps,
          .qk_groups = form == QKNorm::l2 ? 2 : 1,
          .qk_length = 16};
}

/// Names of all learned of a module that are not those of linear layers.
std::vector<std::string> norms_inside(const Module& module) {
  std::vector<std::string> names;
  for (const NamedParameter& parameter : module.named_parameters())
    if (parameter.kind == ParameterKind::norm) names.push_back(parameter.name);
  return names;
}

TEST_CASE("each form of QK-norm is its formula, and starts as published") {
  const Tensor x = random({2, 5, width}, 1);
  for (const auto& [which, name] : EnumNames<QKNorm>::values) {
    INFO(name);
    const Form& form = forms().at(which);
    MultiheadAttention attention(attention_config(which));
    std::string start;
    if (attention.q_norm)
      for (const NamedParameter& parameter : attention.q_norm->named_parameters())
        start += fmt::format("{}{}={:.3g}", start.empty() ? "" : ",", parameter.name,
                             parameter.tensor.to_vector<double>()[0]);
    CHECK(start == form.start);
    if (which == QKNorm::henry)
      CHECK(attention.qk_scale.item() == Approx(std::log2(16.0 * 16.0 - 16.0)));
    moved(attention);
    const Tensor expected = attention.o_proj(joined_heads(attention, x, x, form));
    CHECK(allclose(attention(x), expected, tight));
  }
}

TEST_CASE("head scale and the norm of the heads stand before the output projection") {
  AttentionConfig config = attention_config();
  config.head_scale = true;
  config.inner_norm = NormKind::layer_norm;
  config.inner_norm_eps = eps;
  MultiheadAttention attention(config);
  moved(attention);
  const Tensor x = random({2, 5, width}, 2);
  const Tensor joined = joined_heads(attention, x, x, forms().at(QKNorm::none));
  const Tensor gains = attention.head_scale->parameters()[0].view({heads, 1});
  const Tensor scaled = (joined.view({2, 5, heads, head_dim}) * gains).view(joined.shape());
  const TensorList affine = attention.inner_attn_ln->parameters();
  CHECK(allclose(attention(x), attention.o_proj(centred(scaled) * affine[0] + affine[1]), tight));
}

TEST_CASE("cross-attention takes keys and values from the memory") {
  AttentionConfig config = attention_config(QKNorm::qwen3);
  config.rope = false;
  MultiheadAttention attention(config);
  moved(attention);
  const Tensor x = random({2, 5, width}, 3), memory = random({2, 3, width}, 4);
  const Tensor expected =
      attention.o_proj(joined_heads(attention, x, memory, forms().at(QKNorm::qwen3)));
  CHECK(allclose(attention(x, Tensor(), nullptr, memory), expected, tight));
  // Padding of the memory is not seen.
  const Tensor longer = cat({memory, random({2, 2, width}, 5)}, 1);
  const Tensor padding = tensor({{false, false, false, true, true}}).expand({2, 5});
  CHECK(allclose(attention(x, padding, nullptr, longer), expected, tight));
  CHECK_THROWS_AS(attention(x, Tensor(), nullptr, random({1, 3, width}, 6)), ShapeError);
  CHECK_THROWS_AS(attention(x, tensor({{false, false}, {false, false}}), nullptr, memory),
                  ShapeError);
}

TEST_CASE("the feed-forward: inner norm behind the activation, nGPT's gains before, PolyNorm") {
  const Tensor x = random({2, 3, width}, 7);
  const FeedForwardConfig plain{.d_model = width, .d_ff = 5, .activation = Activation::relu};
  const auto part = [](FeedForward& mlp, const std::string& name) -> Linear& {
    for (const auto& [child, module] : mlp.named_children())
      if (child == name) return dynamic_cast<Linear&>(*module);
    throw ValueError("test", "no " + name);
  };
  const auto learned = [](FeedForward& mlp, const std::string& name) {
    for (const NamedParameter& parameter : mlp.named_parameters())
      if (parameter.name == name) return parameter.tensor;
    throw ValueError("test", "no " + name);
  };
  FeedForwardConfig config = plain;
  config.inner_norm = NormKind::layer_norm;
  config.inner_norm_eps = eps;
  FeedForward normed(config);
  moved(normed);
  CHECK(allclose(normed(x),
                 part(normed, "fc2")(centred(relu(part(normed, "fc1")(x))) *
                                         learned(normed, "ffn_layernorm.weight") +
                                     learned(normed, "ffn_layernorm.bias")),
                 tight));
  config = plain;
  config.unit_scale = true;
  FeedForward sphere(config);
  CHECK(allclose(learned(sphere, "s_u"), ones({5})));
  moved(sphere);
  const double root = std::sqrt(6.0);
  CHECK(allclose(sphere(x),
                 part(sphere, "fc2")(relu(part(sphere, "fc1")(x) * learned(sphere, "s_u") * root)),
                 tight));
  config.activation = Activation::swiglu;
  FeedForward gated(config);
  CHECK(allclose(learned(gated, "s_v"), ones({5})));
  moved(gated);
  CHECK(allclose(
      gated(x),
      part(gated, "down_proj")(silu(part(gated, "gate_proj")(x) * learned(gated, "s_v") * root) *
                               (part(gated, "up_proj")(x) * learned(gated, "s_u"))),
      tight));
  config = plain;
  config.activation = Activation::poly_norm;
  FeedForward poly(config);
  CHECK(allclose(learned(poly, "act_fn.weight"), full({3}, 1.0 / 3.0)));
  moved(poly);
  CHECK(allclose(poly(x),
                 part(poly, "fc2")(poly_norm(part(poly, "fc1")(x), learned(poly, "act_fn.weight"),
                                             learned(poly, "act_fn.bias"))),
                 tight));
}

TransformerConfig block_config(NormPlacement placement) {
  return {.d_model = 8, .num_heads = 2, .d_ff = 12, .placement = placement, .dropout = 0.0};
}

TEST_CASE("each placement puts into the sublayers what its paper has there") {
  using Names = std::vector<std::string>;
  const auto inside = [](NormPlacement which) -> std::pair<Names, Names> {
    switch (which) {
      case NormPlacement::norm_former:
        return {{"head_scale.gamma"}, {"ffn_layernorm.weight", "ffn_layernorm.bias"}};
      case NormPlacement::sub_ln:
        return {{"inner_attn_ln.weight", "inner_attn_ln.bias"},
                {"ffn_layernorm.weight", "ffn_layernorm.bias"}};
      case NormPlacement::hybrid:
      case NormPlacement::hybrid_star:
        return {{"q_norm.weight", "k_norm.weight", "v_norm.weight"}, {}};
      case NormPlacement::ngpt:
        return {{"q_norm.s_qk", "k_norm.s_qk"}, {"s_u"}};
      default:
        return {};
    }
  };
  for (const auto& [which, name] : EnumNames<NormPlacement>::values) {
    INFO(name);
    const TransformerBlock block(block_config(which));
    const auto [attention, feed_forward] = inside(which);
    CHECK(norms_inside(block.self_attn) == attention);
    CHECK(norms_inside(block.mlp) == feed_forward);
  }
}

TEST_CASE("peri normalizes what enters the stack") {
  TransformerEncoder encoder(block_config(NormPlacement::peri));
  moved(encoder);
  const Tensor x = random({2, 3, 8}, 8);
  CHECK(allclose(encoder(x), (*encoder.norm)(encoder.layers[0]((*encoder.embed_norm)(x))), tight));
}

TEST_CASE("layer_scale is a gain on what each sublayer adds") {
  TransformerConfig config = block_config(NormPlacement::none);
  config.layer_scale = 0.25;
  TransformerBlock block(config);
  block.to(float64);
  const Tensor x = random({2, 3, 8}, 9);
  const Tensor h = x + 0.25 * block.self_attn(x);
  CHECK(allclose(block(x), h + 0.25 * block.mlp(h), tight));
  CHECK(norms_inside(block) == std::vector<std::string>{"ls1.gamma", "ls2.gamma"});
}

TEST_CASE("qk_length and qk_groups reach attention through the configuration of the stack") {
  TransformerConfig config = block_config(NormPlacement::pre);
  config.qk_form = QKNorm::henry;
  config.qk_length = 16;
  CHECK(TransformerBlock(config).self_attn.qk_scale.item() == Approx(std::log2(240.0)));
  config.qk_form = QKNorm::l2;
  config.qk_groups = 2;
  CHECK(TransformerBlock(config).self_attn.config.qk_groups == 2);
}

}  // namespace
}  // namespace norma::nn
