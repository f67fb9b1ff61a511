// Norms as layers: names and initial values of their parameters, training and evaluation.
#include "support/catch.h"
#include "support/compare.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/random.h"
#include "norma/nn/batch_norm.h"
#include "norma/nn/point_norms.h"
#include "norma/nn/row_norms.h"
#include "norma/nn/sequential.h"
#include "norma/nn/weight_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/group_norm.h"
#include "norma/ops/linear.h"
#include "norma/ops/norm.h"
#include "norma/ops/point_norm.h"
#include "norma/ops/reduction.h"
#include "norma/ops/view.h"

#include <cmath>

namespace norma::nn {
namespace {

using test::allclose;
using test::bitwise_equal;
using test::random;

Tensor tokens(const Shape& shape, std::uint64_t seed) { return random(shape, seed).to(float32); }

/// "weight=1,bias=0": names and first values of the parameters.
std::string parameters_of(const Module& module) {
  std::string text;
  for (const NamedParameter& parameter : module.named_parameters()) {
    CHECK(parameter.kind == ParameterKind::norm);
    text += fmt::format("{}{}={:.3g}", text.empty() ? "" : ",", parameter.name,
                        parameter.tensor.to_vector<double>()[0]);
  }
  return text;
}

TEST_CASE("each kind of norm has the parameters of its paper") {
  const std::map<NormKind, std::string> expected = {
      {NormKind::none, ""},
      {NormKind::layer_norm, "weight=1,bias=0"},
      {NormKind::layer_norm_no_bias, "weight=1"},
      {NormKind::layer_norm_1p, "weight=0,bias=0"},
      {NormKind::rms_norm, "weight=1"},
      {NormKind::llama_rms_norm, "weight=1"},
      {NormKind::gemma_rms_norm, "weight=0"},
      {NormKind::original_rms_norm, "scale=1"},
      {NormKind::p_rms_norm, "scale=1"},
      {NormKind::crms_norm, "weight=1"},
      {NormKind::scale_norm, "g=4"},
      {NormKind::l2_norm, ""},
      {NormKind::simple_rms_norm, ""},
      {NormKind::ada_norm, ""},
      {NormKind::group_norm, "weight=1,bias=0"},
      {NormKind::dyt, "alpha=0.5,weight=1,bias=0"},
      {NormKind::derf, "alpha=0.5,shift=0,weight=1,bias=0"},
      {NormKind::batch_norm, "weight=1,bias=0"},
      {NormKind::batch_norm_naive, "weight=1,bias=0"},
      {NormKind::power_norm, "weight=1,bias=0"},
      {NormKind::regularized_batch_norm, "weight=1,bias=0"}};
  for (const auto& [kind, name] : EnumNames<NormKind>::values) {
    INFO(name);
    const AnyNorm norm = make_norm(kind, 16);
    CHECK(parameters_of(*norm) == expected.at(kind));
    const Tensor x = tokens({3, 5, 16}, 1).requires_grad_();
    const Tensor y = (*norm)(x);
    CHECK(y.shape() == x.shape());
    square(y).sum().backward();
    CHECK(all(isfinite(x.grad())).item() == 1.0);
  }
}

/// The layer with values of its own in every parameter, so that none can be lost or swapped.
template <class Layer>
Layer& moved(Layer&& layer) {
  const NoGradGuard no_grad;
  std::uint64_t seed = 100;
  for (const Tensor& parameter : layer.parameters())
    parameter.copy_(random(parameter.shape(), ++seed, 0.5, 2.0));
  return layer;
}

TEST_CASE("layers are their operations, with all of their parameters") {
  const Tensor x = tokens({3, 32}, 2);
  const auto same = [&](const char* name, auto&& layer, const auto& operation) {
    INFO(name);
    moved(layer);
    CHECK(bitwise_equal(layer(x).detach(), operation(layer).detach()));
  };
  same("LayerNorm", LayerNorm(32),
       [&](LayerNorm& n) { return layer_norm(x, {32}, n.weight, n.bias, 1e-5); });
  same("RMSNorm", RMSNorm(32, 0.1), [&](RMSNorm& n) { return rms_norm(x, {32}, n.weight, 0.1); });
  same("LayerNorm1P", LayerNorm1P(32, 0.1), [&](LayerNorm1P& n) {
    return layer_norm(x, {32}, n.weight, n.bias, {.eps = 0.1, .unit_offset = true});
  });
  same("GemmaRMSNorm", GemmaRMSNorm(32, 0.1), [&](GemmaRMSNorm& n) {
    return rms_norm(x, {32}, n.weight, {}, {.eps = 0.1, .unit_offset = true});
  });
  same("OriginalRMSNorm", OriginalRMSNorm(32, 0.1, true), [&](OriginalRMSNorm& n) {
    return rms_norm(x, {32}, n.scale, n.offset, {.eps = 0.1, .eps_rule = EpsRule::outside});
  });
  same("PRMSNorm", PRMSNorm(32, 0.25, 0.1), [&](PRMSNorm& n) {
    return p_rms_norm(x, 0.25, n.scale, {}, {.eps = 0.1, .eps_rule = EpsRule::outside});
  });
  same("CRMSNorm", CRMSNorm(32, 0.1), [&](CRMSNorm& n) { return crms_norm(x, n.weight, 0.1); });
  same("ScaleNorm", ScaleNorm(32, 9.0), [&](ScaleNorm& n) { return scale_norm(x, n.g, 9.0); });
  same("L2Norm", L2Norm(9.0), [&](L2Norm&) { return normalize(x, -1, 9.0); });
  same("SimpleRMSNorm", SimpleRMSNorm(9.0),
       [&](SimpleRMSNorm&) { return simple_rms_norm(x, {}, false, 9.0); });
  same("AdaNorm", AdaNorm(32, 2.0, 0.3, 0.1),
       [&](AdaNorm&) { return ada_norm(x, {32}, 2.0, 0.3, 0.1); });
  same("GroupNorm", GroupNorm(2, 32, 0.1),
       [&](GroupNorm& n) { return group_norm(x, 2, n.weight, n.bias, 0.1); });
  same("DyT", DyT(32), [&](DyT& n) { return dynamic_tanh(x, n.alpha, n.weight, n.bias); });
  same("Derf", Derf(32),
       [&](Derf& n) { return dynamic_erf(x, n.alpha, n.shift, n.weight, n.bias); });
  same("LayerScale", LayerScale(32), [&](LayerScale& n) { return x * n.gamma; });
  same("HeadScale", HeadScale(4), [&](HeadScale& n) {
    return (x.view({3, 4, 8}) * n.gamma.view({4, 1})).view({3, 32});
  });
  // Without what is learned.
  same("OriginalRMSNorm", OriginalRMSNorm(32, 0.1, true, false), [&](OriginalRMSNorm&) {
    return rms_norm(x, {32}, {}, {}, {.eps = 0.1, .eps_rule = EpsRule::outside});
  });
  same("PRMSNorm", PRMSNorm(32, 0.25, 0.1, false), [&](PRMSNorm&) {
    return p_rms_norm(x, 0.25, {}, {}, {.eps = 0.1, .eps_rule = EpsRule::outside});
  });
  same("CRMSNorm", CRMSNorm(32, 0.1, false), [&](CRMSNorm&) { return crms_norm(x, {}, 0.1); });
  TokenGroupNorm of_tokens(4, 32);
  moved(of_tokens);
  CHECK(bitwise_equal(of_tokens(x.view({1, 3, 32})).view({3, 32}).detach(),
                      group_norm(x, 4, of_tokens.weight, of_tokens.bias).detach()));
  CHECK_THROWS_AS(GroupNorm(3, 8), ValueError);
  CHECK_THROWS_AS(ScaleNorm(0), ValueError);
}

TEST_CASE("LlamaRMSNorm rounds before its weight") {
  LlamaRMSNorm norm(64);
  moved(norm).to(bfloat16);
  const Tensor x = random({7, 64}, 11).to(bfloat16);
  CHECK(bitwise_equal(norm(x).detach(), (rms_norm(x, {64}, {}, 1e-6) * norm.weight).detach()));
  CHECK_FALSE(bitwise_equal(norm(x).detach(), rms_norm(x, {64}, norm.weight, 1e-6).detach()));
}

TEST_CASE("PolyNorm is its polynomial") {
  PolyNorm norm(0.1);
  const Tensor x = tokens({3, 8}, 12);
  const auto part = [](const Tensor& u) { return u * rsqrt(square(u).mean({-1}, true) + 0.1); };
  moved(norm);
  const Tensor w = norm.weight;
  CHECK(allclose(norm(x), w.narrow(0, 0, 1) * part(x * x * x) + w.narrow(0, 1, 1) * part(x * x) +
                              w.narrow(0, 2, 1) * part(x) + norm.bias));
}

TEST_CASE("InstanceNorm normalizes each channel, in evaluation by what it tracked") {
  const Tensor x = tokens({2, 8, 5}, 13);
  InstanceNorm norm(8, 0.1, 0.25, true, true);
  const auto affine = [&](const Tensor& h) {
    return h * norm.weight.view({8, 1}) + norm.bias.view({8, 1});
  };
  moved(norm);
  CHECK(allclose(norm(x), affine(layer_norm(x, {5}, {}, {}, 0.1))));
  norm(-x);
  norm.eval();
  // Momentum 0.25 twice, from 0 and 1; the mean of -x is that of x with the other sign.
  const Tensor variance = var(x, {2}).mean({0});
  CHECK(allclose(norm.running_mean, -0.0625 * x.mean({0, 2}), {1e-5, 1e-6}));
  CHECK(allclose(norm.running_var, 0.5625 + 0.4375 * variance, {1e-5, 1e-6}));
  const Tensor h =
      (x - norm.running_mean.view({8, 1})) * rsqrt(norm.running_var.view({8, 1}) + 0.1);
  CHECK(allclose(norm(x), affine(h), {1e-5, 1e-6}));
}

TEST_CASE("AdaLayerNorm starts as LayerNorm with a closed gate") {
  manual_seed(1);
  AdaLayerNorm norm(8, 4);
  const Tensor x = tokens({2, 3, 8}, 3), condition = tokens({2, 4}, 4);
  const auto start = norm(x, condition);
  CHECK(allclose(start.output, layer_norm(x, {8}, {}, {}, 1e-6)));
  CHECK(allclose(start.gate, zeros({2, 1, 8})));
  moved(norm.modulation);
  const Tensor parts = norm.modulation(condition).unsqueeze(1);  // shift, scale, gate: as DiT
  const auto [output, gate] = norm(x, condition);
  CHECK(allclose(output, layer_norm(x, {8}, {}, {}, 1e-6) * (1.0 + parts.narrow(2, 8, 8)) +
                             parts.narrow(2, 0, 8)));
  CHECK(bitwise_equal(gate.detach(), parts.narrow(2, 16, 8).contiguous().detach()));
}

TEST_CASE("AdaRMSNorm: weight, shift, scale and gate; hooks run") {
  AdaRMSNorm norm(8, 4);
  const Tensor x = tokens({2, 3, 8}, 3), condition = tokens({2, 4}, 4);
  CHECK(allclose(norm(x, condition).output, rms_norm(x, {8}, {}, 1e-6)));
  moved(norm);
  const Tensor parts = norm.modulation(condition).unsqueeze(1);
  const auto [output, gate] = norm(x, condition);
  CHECK(allclose(output, rms_norm(x, {8}, norm.weight, 1e-6) * (1.0 + parts.narrow(2, 8, 8)) +
                             parts.narrow(2, 0, 8)));
  CHECK(bitwise_equal(gate.detach(), parts.narrow(2, 16, 8).contiguous().detach()));
  const auto hook =
      norm.register_forward_pre_hook([](Module&, const Tensor& input) { return input * 0.0; });
  CHECK(allclose(norm(x, condition).output, (parts.narrow(2, 0, 8) + 0.0 * x)));
  CHECK_FALSE(AdaRMSNorm(8, 4, false)(x, condition).gate.defined());
}

TEST_CASE("BatchNorm: buffers, training and evaluation") {
  BatchNorm norm(3);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : norm.state_dict()) names.push_back(name);
  CHECK(std::is_permutation(names.begin(), names.end(),
                            std::vector<std::string>{"weight", "bias", "running_mean",
                                                     "running_var", "num_batches_tracked"}
                                .begin()));
  const Tensor x = tokens({6, 3}, 5);
  const Tensor trained = norm(x);
  CHECK(allclose(trained.mean({0}), zeros({3}), {0, 1e-6}));
  CHECK(norm.num_batches_tracked.item() == 1.0);
  norm.eval();
  const Tensor mean = norm.running_mean.clone();
  CHECK(allclose(norm(x), (x - mean) * rsqrt(norm.running_var + 1e-5), {1e-5, 1e-6}));
  CHECK(bitwise_equal(norm.running_mean, mean));
  CHECK(norm.num_batches_tracked.item() == 1.0);
  BatchNorm cumulative(3, 1e-5, std::nullopt);
  const Tensor other = tokens({6, 3}, 6);
  cumulative(x);
  cumulative(other);
  CHECK(allclose(cumulative.running_mean, (x.mean({0}) + other.mean({0})) / 2.0, {1e-5, 1e-6}));
}

TEST_CASE("InstanceNorm has PyTorch's buffers, for its state dicts load strictly") {
  InstanceNorm norm(3, 1e-5, 0.1, false, true);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : norm.state_dict()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"running_mean", "running_var", "num_batches_tracked"});
  norm(tokens({2, 3, 4}, 9));
  CHECK(norm.num_batches_tracked.item() == 0.0);  // PyTorch does not count them either
}

TEST_CASE("MaskedBatchNorm leaves padding out, also between heads; NaiveBatchNorm counts it") {
  const Tensor x = tokens({2, 3, 2, 4}, 7);
  const Tensor padding = tensor({{0.0, 0.0, 1.0}, {0.0, 1.0, 1.0}}) > 0.5;
  MaskedBatchNorm norm(4);
  norm.use_padding(padding);
  const Tensor y = norm(x);
  const Tensor kept = logical_not(padding).to(float32).reshape({2, 3, 1, 1});
  CHECK(allclose((y * kept).sum({0, 1, 2}), zeros({4}), {0, 1e-5}));
  const AnyNorm naive = make_norm(NormKind::batch_norm_naive, 4);
  naive->use_padding(padding);
  CHECK(bitwise_equal((*naive)(x), MaskedBatchNorm(4)(x)));
}

TEST_CASE("RegularizedBatchNorm has a penalty in training") {
  RegularizedBatchNorm norm(4, {.mean_penalty = 1.0, .variance_penalty = 0.0});
  const Tensor x = tokens({6, 4}, 8).requires_grad_();
  norm(x);
  CHECK(norm.penalty().item() == Approx(square(x.detach().mean({0})).sum().item()));
  norm.penalty().backward();
  CHECK(allclose(x.grad(), (2.0 / 6.0 * x.detach().mean({0})).expand({6, 4}), {1e-4, 1e-6}));
  norm.eval();
  norm(x);
  CHECK(norm.penalty().item() == 0.0);
  // A model's: the sum of its norms'.
  Sequential model(std::make_unique<RegularizedBatchNorm>(4), std::make_unique<LayerNorm>(4),
                   std::make_unique<RegularizedBatchNorm>(4));
  CHECK_FALSE(norm_penalty(model).defined());
  model(x.detach());
  const auto parts = model.children();
  const auto one = [&](std::size_t i) { return dynamic_cast<Norm&>(*parts[i]).penalty().item(); };
  CHECK(one(0) > 0.0);
  CHECK(one(2) > 0.0);
  CHECK(norm_penalty(model).item() == Approx(one(0) + one(2)));
}

TEST_CASE("PowerNorm moves its statistics in training only") {
  PowerNorm norm(4, 2, {.eps = 0.5});
  CHECK(norm.options.eps == 0.5);
  const Tensor x = tokens({6, 4}, 9).requires_grad_();
  square(norm(x)).sum().backward();
  CHECK(norm.num_batches_tracked.item() == 1.0);
  CHECK_FALSE(bitwise_equal(norm.running_phi, ones({4})));
  CHECK_FALSE(bitwise_equal(norm.ema_gz, zeros({4})));
  const Tensor phi = norm.running_phi.clone();
  norm.eval();
  norm(x);
  CHECK(bitwise_equal(norm.running_phi, phi));
}

TEST_CASE("WeightNormLinear starts as its direction, and its gain sets the norms") {
  manual_seed(2);
  WeightNormLinear layer(5, 3);
  const Tensor x = tokens({2, 5}, 10);
  CHECK(allclose(layer(x), linear(x, layer.weight_v, layer.bias), {1e-5, 1e-6}));
  CHECK(layer.weight_g.shape() == Shape{3, 1});
  square(layer(x)).sum().backward();
  // The direction's gradient is orthogonal to it.
  CHECK(
      allclose((layer.weight_v.grad() * layer.weight_v.detach()).sum({1}), zeros({3}), {0, 1e-5}));
}

TEST_CASE("SpectralNormLinear: largest singular value 1, no iteration in evaluation") {
  manual_seed(3);
  SpectralNormLinear layer(5, 3, false);
  for (int i = 0; i < 50; ++i) layer(ones({1, 5}));
  layer.eval();
  const Tensor u = layer.weight_u.clone();
  // v and u converged: W v = u for the normalized W.
  CHECK(allclose(layer(layer.weight_v.view({1, 5})).view({3}), u, {1e-4, 1e-4}));
  CHECK(bitwise_equal(layer.weight_u, u));
}

TEST_CASE("FixNormEmbedding looks up vectors of one length") {
  manual_seed(4);
  FixNormEmbedding embedding(7, 16);
  const Tensor y = embedding(tensor({1, 5, 6}));
  CHECK(allclose(vector_norm(y, {1}), full({3}, 4.0)));
  CHECK(embedding.named_parameters()[0].kind == ParameterKind::norm);
}

}  // namespace
}  // namespace norma::nn
