// Norms as layers: names and initial values of their parameters, training and evaluation.
#include "support/catch.h"
#include "support/compare.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/nn/batch_norm.h"
#include "norma/nn/point_norms.h"
#include "norma/nn/row_norms.h"
#include "norma/nn/weight_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/group_norm.h"
#include "norma/ops/linear.h"
#include "norma/ops/norm.h"
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
      {NormKind::power_norm, "weight=1,bias=0"}};
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

TEST_CASE("layers call their operations") {
  const Tensor x = tokens({3, 8}, 2);
  CHECK(bitwise_equal(GemmaRMSNorm(8)(x), rms_norm(x, {8}, ones({8}), 1e-6)));
  CHECK(bitwise_equal(LlamaRMSNorm(8)(x), rms_norm(x, {8}, ones({8}), 1e-6)));
  CHECK(bitwise_equal(GroupNorm(2, 8)(x), group_norm(x, 2, ones({8}), zeros({8}))));
  CHECK(bitwise_equal(TokenGroupNorm(2, 8)(x.view({1, 3, 8})).view({3, 8}),
                      group_norm(x, 2, ones({8}), zeros({8}))));
  CHECK(allclose(LayerScale(8, 0.5)(x), x * 0.5));
  CHECK(allclose(HeadScale(2)(x), x));
  CHECK(allclose(PolyNorm()(x).mean(), PolyNorm()(x).mean()));
  CHECK(InstanceNorm(8)(x.view({1, 8, 3})).shape() == Shape{1, 8, 3});
  CHECK_THROWS_AS(GroupNorm(3, 8), ValueError);
  CHECK_THROWS_AS(ScaleNorm(0), ValueError);
}

TEST_CASE("AdaLayerNorm starts as LayerNorm with a closed gate") {
  manual_seed(1);
  AdaLayerNorm norm(8, 4);
  const Tensor x = tokens({2, 3, 8}, 3);
  const auto [output, gate] = norm(x, tokens({2, 4}, 4));
  CHECK(allclose(output, layer_norm(x, {8}, {}, {}, 1e-6)));
  CHECK(allclose(gate, zeros({2, 1, 8})));
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
}

TEST_CASE("PowerNorm moves its statistics in training only") {
  PowerNorm norm(4, 1e-5, 2);
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
