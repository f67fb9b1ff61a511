// Each placement against its formula, with sublayers that are plain functions; then whole blocks.
#include "support/catch.h"
#include "support/compare.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/nn/transformer.h"
#include "norma/nn/weight_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/norm.h"
#include "norma/ops/reduction.h"
#include "norma/optim/weight_decay_groups.h"

#include <cmath>

namespace norma::nn {
namespace {

using test::allclose;
using test::random;

Tensor f(const Tensor& x) { return 2.0 * x + 0.5; }
Tensor g(const Tensor& x) { return x * x - 0.25; }

/// A placement with weights that tell its norms apart.
struct Placed {
  std::unique_ptr<Placement> placement;
  Placed(NormPlacement which, PlacementContext context) {
    context.d_model = 6;
    placement = make_placement(which, context);
    double gain = 0.5;
    for (const auto& [name, part] : placement->parts())
      for (const NamedParameter& parameter : part->named_parameters())
        if (parameter.name == "weight") {
          NoGradGuard no_grad;
          parameter.tensor.copy_(full({6}, gain += 0.25));
        }
  }
  Tensor run(const Tensor& x) { return placement->forward(x, {f, g}); }
  Tensor norm(const std::string& name, const Tensor& x) {
    for (const auto& [candidate, part] : placement->parts())
      if (candidate == name) return (*part)(x);
    throw ValueError("test", "no norm " + name);
  }
};

Tensor input() { return random({2, 3, 6}, 1).to(float32); }

TEST_CASE("placements are their formulas") {
  const Tensor x = input();
  const PlacementContext context{.layer = 2, .num_layers = 8};
  const auto check = [&](NormPlacement which, const auto& formula) {
    INFO(to_string(which));
    Placed placed(which, context);
    CHECK(allclose(placed.run(x), formula(placed), {1e-6, 1e-6}));
  };
  check(NormPlacement::none, [&](Placed&) {
    const Tensor h = x + f(x);
    return h + g(h);
  });
  const auto post = [&](Placed& p) {
    const Tensor h = p.norm("norm1", x + f(x));
    return p.norm("norm2", h + g(h));
  };
  const auto pre = [&](Placed& p) {
    const Tensor h = x + f(p.norm("norm1", x));
    return h + g(p.norm("norm2", h));
  };
  check(NormPlacement::post, post);
  check(NormPlacement::pre, pre);
  check(NormPlacement::sub_ln, pre);
  check(NormPlacement::residual, post);
  check(NormPlacement::mix, pre);  // layer 2 of 8: behind the first quarter
  const auto sandwich = [&](Placed& p) {
    const Tensor h = x + p.norm("post_norm1", f(p.norm("norm1", x)));
    return h + p.norm("post_norm2", g(p.norm("norm2", h)));
  };
  check(NormPlacement::sandwich, sandwich);
  check(NormPlacement::peri, sandwich);
  check(NormPlacement::olmo2, [&](Placed& p) {
    const Tensor h = x + p.norm("norm1", f(x));
    return h + p.norm("norm2", g(h));
  });
  check(NormPlacement::deep_norm, [&](Placed& p) {
    const Tensor h = p.norm("norm1", 2.0 * x + f(x));  // (2 * 8)^(1/4) = 2
    return p.norm("norm2", 2.0 * h + g(h));
  });
  check(NormPlacement::norm_former, [&](Placed& p) {
    const Tensor h = x + p.norm("post_norm1", f(p.norm("norm1", x)));
    return h + g(p.norm("norm2", h));
  });
  check(NormPlacement::scaled, [&](Placed& p) {
    const double scale = 1.0 / std::sqrt(3.0);  // layers count from 1
    const Tensor h = x + f(scale * p.norm("norm1", x));
    return h + g(scale * p.norm("norm2", h));
  });
  const auto hybrid = [&](Placed& p) {
    const Tensor h = p.norm("norm2", x + f(x));
    return h + g(h);
  };
  check(NormPlacement::hybrid, hybrid);
  check(NormPlacement::hybrid_star, hybrid);
  check(NormPlacement::keel, [&](Placed& p) {
    const Tensor h = p.norm("post_norm1", 16.0 * x + f(p.norm("norm1", x)));
    return p.norm("post_norm2", 16.0 * h + g(p.norm("norm2", h)));
  });
  check(NormPlacement::parallel,
        [&](Placed& p) { return x + f(p.norm("norm1", x)) + g(p.norm("norm2", x)); });
  check(NormPlacement::ngpt, [&](Placed&) {
    const auto step = [](const Tensor& from, const Tensor& to) {
      return normalize(normalize(from) + 0.05 * (normalize(to) - normalize(from)));
    };
    const Tensor h = step(x, f(x));
    return step(h, g(h));
  });
}

TEST_CASE("placements that depend on the layer") {
  const Tensor x = input();
  const auto is_hybrid = [&](std::int64_t layer) {
    Placed placed(NormPlacement::hybrid_star, {.layer = layer, .num_layers = 4});
    const Tensor h = placed.norm("norm2", x + f(x));
    return allclose(placed.run(x), h + g(h)).ok;
  };
  CHECK_FALSE(is_hybrid(0));
  CHECK(is_hybrid(1));
  const auto is_post = [&](std::int64_t layer, std::int64_t layers) {
    Placed placed(NormPlacement::mix, {.layer = layer, .num_layers = layers});
    const Tensor h = placed.norm("norm1", x + f(x));
    return allclose(placed.run(x), placed.norm("norm2", h + g(h))).ok;
  };
  Placed half(NormPlacement::mix, {.layer = 1, .num_layers = 4, .mix_share = 0.5});
  const Tensor first = half.norm("norm1", x + f(x));
  CHECK(allclose(half.run(x), half.norm("norm2", first + g(first))));
  CHECK(is_post(0, 8));
  CHECK(is_post(1, 8));
  CHECK_FALSE(is_post(2, 8));
  CHECK_FALSE(is_post(0, 3));
}

TEST_CASE("PB-relax makes 8 of the largest magnitude, a constant to the gradient") {
  // With so large an eps the factor shows.
  Placed placed(NormPlacement::sandwich, {.eps = 0.5, .pb_relax = true});
  const auto relaxed = [](const Tensor& t) { return t / (amax(abs(t.detach())) / 8.0); };
  const auto formula = [&](const Tensor& x) {
    const Tensor h = x + placed.norm("post_norm1", relaxed(f(placed.norm("norm1", relaxed(x)))));
    return h + placed.norm("post_norm2", relaxed(g(placed.norm("norm2", relaxed(h)))));
  };
  const Tensor x = input().requires_grad_(), same = input().requires_grad_();
  const Tensor y = placed.run(x), expected = formula(same);
  CHECK(allclose(y, expected, {1e-6, 1e-6}));
  square(y).sum().backward();
  square(expected).sum().backward();
  CHECK(allclose(x.grad(), same.grad(), {1e-5, 1e-5}));
}

TEST_CASE("NormFormer's ResScale is a gain of the last residual, ones at first") {
  const Tensor x = input();
  Placed placed(NormPlacement::norm_former, {.res_scale = true});
  Norm& gain = *placed.placement->parts().back().part;
  CHECK(test::bitwise_equal(gain(x).detach(), x));
  {
    const NoGradGuard no_grad;
    gain.parameters()[0].copy_(full({6}, 3.0));
  }
  const Tensor h = x + placed.norm("post_norm1", f(placed.norm("norm1", x)));
  CHECK(allclose(placed.run(x), 3.0 * h + g(placed.norm("norm2", h)), {1e-6, 1e-6}));
}

TEST_CASE("placements of three sublayers, in the decoder of an encoder-decoder") {
  const auto cross = [](const Tensor& x) { return 1.0 - 0.5 * x; };
  const Tensor x = input();
  const PlacementContext context{
      .layer = 1, .num_layers = 4, .role = StackRole::decoder, .other_layers = 9, .sublayers = 3};
  const auto check = [&](NormPlacement which, const auto& formula) {
    INFO(to_string(which));
    Placed p(which, context);
    CHECK(allclose(p.placement->forward(x, {f, cross, g}), formula(p), {1e-6, 1e-6}));
  };
  check(NormPlacement::pre, [&](Placed& p) {
    Tensor h = x + f(p.norm("norm1", x));
    h = h + cross(p.norm("norm2", h));
    return h + g(p.norm("norm3", h));
  });
  check(NormPlacement::deep_norm, [&](Placed& p) {
    const double alpha = std::pow(3.0 * 4.0, 0.25);
    Tensor h = p.norm("norm1", alpha * x + f(x));
    h = p.norm("norm2", alpha * h + cross(h));
    return p.norm("norm3", alpha * h + g(h));
  });
  check(NormPlacement::keel, [&](Placed& p) {
    Tensor h = p.norm("post_norm1", 12.0 * x + f(p.norm("norm1", x)));
    h = p.norm("post_norm2", 12.0 * h + cross(p.norm("norm2", h)));
    return p.norm("post_norm3", 12.0 * h + g(p.norm("norm3", h)));
  });
  check(NormPlacement::hybrid, [&](Placed& p) {
    Tensor h = x + f(x);
    h = p.norm("norm3", h + cross(h));
    return h + g(h);
  });
  check(NormPlacement::norm_former, [&](Placed& p) {
    Tensor h = x + p.norm("post_norm1", f(p.norm("norm1", x)));
    h = h + cross(p.norm("norm2", h));
    return h + g(p.norm("norm3", h));
  });
  check(NormPlacement::parallel, [&](Placed& p) {
    return x + f(p.norm("norm1", x)) + cross(p.norm("norm2", x)) + g(p.norm("norm3", x));
  });
}

TEST_CASE("constants of DeepNorm and SubLN") {
  const auto near = [](double value, double expected) {
    return std::abs(value - expected) < 1e-12 * expected;
  };
  const DeepNormConstants alone = deep_norm_constants(StackRole::alone, 8);
  CHECK(near(alone.alpha, 2.0));
  CHECK(near(alone.beta, std::pow(64.0, -0.25)));
  const DeepNormConstants encoder = deep_norm_constants(StackRole::encoder, 6, 12);
  CHECK(near(encoder.alpha, 0.81 * std::pow(1296.0 * 12.0, 0.0625)));
  CHECK(near(encoder.beta, 0.87 * std::pow(1296.0 * 12.0, -0.0625)));
  const DeepNormConstants decoder = deep_norm_constants(StackRole::decoder, 6, 12);
  CHECK(near(decoder.alpha, std::pow(36.0, 0.25)));
  CHECK(near(decoder.beta, std::pow(144.0, -0.25)));
  CHECK(near(sub_ln_gain(StackRole::alone, 6), std::sqrt(std::log(12.0))));
  CHECK(near(sub_ln_gain(StackRole::decoder, 6, 12), std::sqrt(std::log(36.0))));
  CHECK(near(sub_ln_gain(StackRole::encoder, 6, 12),
             std::sqrt(std::log(36.0) * std::log(12.0) / 3.0)));
  CHECK_THROWS_AS(deep_norm_constants(StackRole::decoder, 6), ValueError);
}

TransformerConfig small_config(NormPlacement placement, NormKind norm = NormKind::layer_norm) {
  return {.d_model = 8,
          .num_heads = 2,
          .d_ff = 12,
          .num_layers = 4,
          .norm = norm,
          .placement = placement,
          .dropout = 0.0,
          .positions = Positions::rope,
          .bias = placement != NormPlacement::ngpt};
}

TEST_CASE("DeepNorm and SubLN scale the initial values of four matrices") {
  for (const NormPlacement which : {NormPlacement::deep_norm, NormPlacement::sub_ln}) {
    INFO(to_string(which));
    manual_seed(3);
    const TransformerBlock plain(small_config(NormPlacement::pre));
    manual_seed(3);
    const TransformerBlock scaled(small_config(which));
    const double gain = residual_gain(which, 4);
    CHECK(gain != 1.0);
    const auto expected = plain.state_dict();
    for (const auto& [name, tensor] : scaled.state_dict()) {
      INFO(name);
      if (name.find("proj") == std::string::npos && name.find("fc") == std::string::npos) continue;
      const bool kept =
          name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos;
      CHECK(allclose(tensor, expected.at(name) * (kept ? 1.0 : gain)));
    }
  }
}

TEST_CASE("every norm in every placement trains, and its parameters go where they belong") {
  const Tensor input = random({2, 5, 8}, 7).to(float32);
  const Tensor padding = tensor({{0.0, 0.0, 0.0, 0.0, 1.0}, {0.0, 0.0, 0.0, 1.0, 1.0}}) > 0.5;
  for (const auto& [placement, placement_name] : EnumNames<NormPlacement>::values)
    for (const auto& [norm, norm_name] : EnumNames<NormKind>::values) {
      INFO(placement_name << " of " << norm_name);
      TransformerEncoder encoder(small_config(placement, norm));
      const Tensor y = encoder(input, padding);
      REQUIRE(y.shape() == input.shape());
      square(y).sum().backward();
      std::size_t norms = 0;
      for (const NamedParameter& parameter : encoder.named_parameters()) {
        INFO(parameter.name);
        norms += parameter.kind == ParameterKind::norm ? 1 : 0;
        REQUIRE(parameter.tensor.grad().defined());
        CHECK(all(isfinite(parameter.tensor.grad())).item() == 1.0);
      }
      // Four blocks of six matrices decay, and nothing else; nGPT's are on the sphere.
      CHECK(optim::weight_decay_groups(encoder, 0.01).groups[0].params.size() ==
            (placement == NormPlacement::ngpt ? 0U : 24U));
      const bool learned = placement == NormPlacement::ngpt || norm == NormKind::layer_norm;
      if (learned && placement != NormPlacement::none) CHECK(norms > 0);
    }
}

TEST_CASE("ResiDual adds the norm of all outputs at the end") {
  manual_seed(1);
  TransformerEncoder encoder(small_config(NormPlacement::residual));
  encoder.eval();
  const Tensor input = random({1, 3, 8}, 8).to(float32);
  Tensor sum = input, h = input;
  for (TransformerBlock& block : encoder.layers) {
    const auto modules = block.named_modules();
    const auto norm = [&](const std::string& name, const Tensor& t) {
      for (const auto& [path, module] : modules)
        if (path == name) return (*dynamic_cast<Norm*>(module))(t);
      throw ValueError("test", "no norm");
    };
    for (const bool first : {true, false}) {
      const Tensor out = first ? block.self_attn(h) : block.mlp(h);
      sum = sum + out;
      h = norm(first ? "norm1" : "norm2", h + out);
    }
  }
  CHECK(allclose(encoder(input), h + (*encoder.norm)(sum), {1e-5, 1e-6}));
  CHECK(allclose(encoder(input), h + (*encoder.norm)(sum), {1e-5, 1e-6}));  // nothing is left over
}

TEST_CASE("nGPT keeps its matrices on the sphere") {
  TransformerEncoder encoder(small_config(NormPlacement::ngpt));
  normalize_matrices_(encoder);
  const StateDict state = encoder.state_dict();
  const auto lengths = [&](const char* name, std::int64_t dim) {
    return vector_norm(state.at(std::string("layers.0.") + name), {dim});
  };
  CHECK(allclose(lengths("self_attn.q_proj.weight", 1), ones({8})));
  CHECK(allclose(lengths("self_attn.o_proj.weight", 0), ones({8})));
  CHECK(allclose(lengths("mlp.fc1.weight", 1), ones({12})));
  CHECK(allclose(lengths("mlp.fc2.weight", 0), ones({12})));
  const Tensor y = encoder(random({1, 3, 8}, 9).to(float32));
  CHECK(allclose(vector_norm(y, {-1}), ones({1, 3})));
}

TEST_CASE("all forms of QK-norm: shapes of the weights, gradients") {  // values: sublayers_test.cpp
  const Tensor input = random({2, 5, 8}, 7).to(float32);
  const std::map<QKNorm, Shape> weights = {{QKNorm::l2_learned, {2, 4}}, {QKNorm::head_rms, {2, 4}},
                                           {QKNorm::vit22b, {4}},        {QKNorm::cohere, {2, 4}},
                                           {QKNorm::chameleon, {2, 4}},  {QKNorm::qwen3, {4}},
                                           {QKNorm::gemma3, {4}},        {QKNorm::olmo2, {8}},
                                           {QKNorm::hybrid, {4}},        {QKNorm::ngpt, {2, 1, 4}}};
  for (const auto& [form, name] : EnumNames<QKNorm>::values) {
    INFO(name);
    MultiheadAttention attention({.d_model = 8, .num_heads = 2, .rope = true, .qk_form = form});
    const Tensor y = attention(input);
    square(y).sum().backward();
    for (const NamedParameter& parameter : attention.named_parameters()) {
      INFO(parameter.name);
      REQUIRE(parameter.tensor.grad().defined());
      CHECK(all(isfinite(parameter.tensor.grad())).item() == 1.0);
      if (parameter.name.starts_with("q_norm.") && weights.contains(form))
        CHECK(parameter.tensor.shape() == weights.at(form));
    }
    CHECK((attention.v_norm != nullptr) == (form == QKNorm::hybrid));
    CHECK(attention.qk_scale.defined() == (form == QKNorm::henry));
    if (form == QKNorm::none) continue;
    // Queries and keys are normalized: their size does not matter.
    NoGradGuard no_grad;
    attention.q_proj.weight.copy_(attention.q_proj.weight * 7.0);
    attention.q_proj.bias.copy_(attention.q_proj.bias * 7.0);
    CHECK(allclose(attention(input), y.detach(), {1e-3, 1e-4}));
  }
  CHECK_THROWS_AS(
      MultiheadAttention(
          {.d_model = 8, .num_heads = 2, .qk_norm = NormKind::rms_norm, .qk_form = QKNorm::qwen3}),
      ValueError);
}

}  // namespace
}  // namespace norma::nn
