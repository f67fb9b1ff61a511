// Linear, Embedding, Dropout, activations, norms, containers and losses as layers.
#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/random.h"
#include "norma/nn/activation.h"
#include "norma/nn/dropout.h"
#include "norma/nn/embedding.h"
#include "norma/nn/linear.h"
#include "norma/nn/loss.h"
#include "norma/nn/norm.h"
#include "norma/nn/sequential.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"
#include "norma/ops/reduction.h"
#include "support/catch.h"
#include "support/compare.h"

#include <cmath>

using namespace norma;
using norma::test::allclose;
using norma::test::bitwise_equal;

namespace {

void set(const Tensor& parameter, const std::vector<double>& values) {
  NoGradGuard no_grad;
  parameter.copy_(from_values(values, parameter.shape()));
}

}  // namespace

TEST_CASE("Linear is x W^T + b with PyTorch's initial bounds") {
  manual_seed(1);
  nn::Linear layer(2, 3);
  set(layer.weight, {1, 2, 3, 4, 5, 6});
  set(layer.bias, {0.5, 0, -1});
  CHECK(allclose(layer(tensor({{1.0, 10.0}})), tensor({{21.5, 43.0, 64.0}})));
  CHECK(layer(ones({4, 5, 2})).shape() == Shape{4, 5, 3});

  nn::Linear large(100, 200);
  const double limit = 0.1;
  CHECK(large.weight.abs().to_vector<double>().size() == 20000);
  for (const Tensor& parameter : large.parameters()) {
    const double largest = amax(parameter.abs().flatten(), {0}).item();
    CHECK(largest <= limit);
    CHECK(largest > 0.95 * limit);
  }
  nn::Linear plain(2, 3, false);
  CHECK_FALSE(plain.bias.defined());
  CHECK(plain.named_parameters().size() == 1);
  CHECK(plain.str() == "Linear(in_features=2, out_features=3, bias=False)");
  CHECK_THROWS_AS(nn::Linear(0, 3), ValueError);
}

TEST_CASE("Embedding looks up rows; the padding row is zero and gets no gradient") {
  manual_seed(2);
  nn::Embedding layer(6, 4, -6);
  CHECK(layer.padding_idx == 0);
  const Tensor index = tensor({{1, 0}, {5, 1}});
  const Tensor y = layer(index);
  CHECK(y.shape() == Shape{2, 2, 4});
  CHECK(allclose(y[0][1], {0, 0, 0, 0}));
  CHECK(bitwise_equal(y[1][0].detach(), layer.weight.detach()[5]));
  y.sum().backward();
  CHECK(allclose(layer.weight.grad().sum({1}), {0, 8, 0, 0, 0, 4}));
  CHECK(layer.str() == "Embedding(6, 4, padding_idx=0)");
  CHECK(layer.named_parameters()[0].kind == nn::ParameterKind::embedding);
  CHECK_THROWS_AS(layer(tensor({6})), IndexError);
  CHECK_THROWS_AS(nn::Embedding(6, 4, 6), ValueError);

  nn::Embedding wide(1000, 40);
  CHECK(wide.weight.square().mean().item() == Approx(1.0).epsilon(0.03));
  wide.reset_parameters(0.02);
  CHECK(std::sqrt(wide.weight.square().mean().item()) == Approx(0.02).epsilon(0.03));
}

TEST_CASE("Dropout acts in training only, and repeats with the seed") {
  nn::Dropout layer(0.25);
  const Tensor x = ones({10000});
  manual_seed(3);
  const Tensor y = layer(x);
  const double kept = (y * 0.75).sum().item() / 10000.0;
  CHECK(kept == Approx(0.75).epsilon(0.03));
  CHECK(amax(y, {0}).item() == Approx(1.0 / 0.75));
  manual_seed(3);
  CHECK(bitwise_equal(layer(x), y));
  layer.eval();
  CHECK(layer(x).is_same(x));
  CHECK(nn::Dropout(0.0)(x).is_same(x));
  CHECK_THROWS_AS(nn::Dropout(1.5), ValueError);
  CHECK_THROWS_AS(nn::Dropout(std::nan("")), ValueError);
}

TEST_CASE("activations have their known values") {
  const Tensor x = tensor({-1.0, 0.0, 2.0}, {.dtype = float64});
  const test::Tolerance tight{1e-9, 1e-12};
  CHECK(allclose(nn::ReLU()(x), {0, 0, 2}));
  CHECK(allclose(nn::GELU()(x), {-0.15865525393145707, 0, 1.9544997361036416}, tight));
  CHECK(allclose(nn::GELU("tanh")(x), {-0.15880800939172324, 0, 1.9545976940877752}, tight));
  CHECK(allclose(nn::SiLU()(x), {-0.2689414213699951, 0, 1.7615941559557649}, tight));
  CHECK(allclose(nn::Tanh()(x), {-0.7615941559557649, 0, 0.9640275800758169}, tight));
  CHECK(allclose(nn::Sigmoid()(x), {0.2689414213699951, 0.5, 0.8807970779778823}, tight));
  CHECK(nn::Identity()(x).is_same(x));
  CHECK_THROWS_AS(nn::GELU("sigmoid"), ValueError);
}

TEST_CASE("norm layers normalize, scale and print") {
  nn::LayerNorm layer_norm(4, 0.0);
  const Tensor x = tensor({{1.0, 2.0, 3.0, 4.0}});
  const double unit = 1.0 / std::sqrt(1.25);
  CHECK(allclose(layer_norm(x), tensor({{-1.5 * unit, -0.5 * unit, 0.5 * unit, 1.5 * unit}})));
  set(layer_norm.bias, {1, 1, 1, 1});
  set(layer_norm.weight, {0, 0, 0, 2});
  CHECK(allclose(layer_norm(x), tensor({{1.0, 1.0, 1.0, 1.0 + 3.0 * unit}})));

  nn::RMSNorm rms_norm(4, 0.0);
  const double root = 1.0 / std::sqrt(7.5);
  CHECK(allclose(rms_norm(x), tensor({{root, 2 * root, 3 * root, 4 * root}})));

  CHECK(layer_norm.str() == "LayerNorm((4,), eps=0, elementwise_affine=True)");
  CHECK(nn::RMSNorm(4).str() == "RMSNorm((4,), eps=None, elementwise_affine=True)");
  CHECK(nn::LayerNorm(Shape{2, 3}).weight.shape() == Shape{2, 3});
  CHECK(nn::LayerNorm(3, 1e-5, false).parameters().empty());
  CHECK(nn::LayerNorm(3, 1e-5, true, false).parameters().size() == 1);
  CHECK(nn::RMSNorm(3, 1e-5, false).parameters().empty());
  for (const auto& entry : layer_norm.named_parameters())
    CHECK(entry.kind == nn::ParameterKind::norm);
  CHECK_THROWS_AS(nn::LayerNorm(0), ValueError);
  CHECK_THROWS_AS(nn::RMSNorm(Shape{}), ValueError);
}

TEST_CASE("make_norm makes each kind, and hooks reach a norm through its base") {
  const Tensor x = tensor({{3.0, 4.0}});
  const nn::AnyNorm none = nn::make_norm(nn::NormKind::none, 2);
  CHECK((*none)(x).is_same(x));
  CHECK(none->parameters().empty());
  const nn::AnyNorm layer = nn::make_norm(nn::NormKind::layer_norm, 2);
  CHECK(layer->type_name() == "LayerNorm");
  CHECK(dynamic_cast<nn::LayerNorm&>(*layer).eps == 1e-5);
  const nn::AnyNorm rms = nn::make_norm(nn::NormKind::rms_norm, 2, 1e-3);
  CHECK(dynamic_cast<nn::RMSNorm&>(*rms).eps == 1e-3);
  rms->register_forward_hook([](nn::Module&, const Tensor&, const Tensor& y) { return y * 0.0; });
  CHECK(allclose((*rms)(x), tensor({{0.0, 0.0}})));
}

TEST_CASE("names of enum values go both ways") {
  for (const auto& [kind, name] : nn::EnumNames<nn::NormKind>::values) {
    CHECK(nn::to_string(kind) == name);
    CHECK(nn::parse<nn::NormKind>(name) == kind);
  }
  CHECK_THROWS_WITH(
      nn::parse<nn::NormKind>("rmsnorm"),
      "[NormKind] must be one of " + nn::enum_choices<nn::NormKind>() + "; got \"rmsnorm\"");
}

TEST_CASE("Sequential owns layers of any kind and numbers them") {
  manual_seed(4);
  nn::Sequential net(nn::make<nn::Linear>(2, 8), nn::make<nn::ReLU>());
  net.emplace<nn::Linear>(8, 1);
  CHECK(net.size() == 3);
  const Tensor x = ones({5, 2});
  auto& first = dynamic_cast<nn::Linear&>(net[0]);
  auto& last = dynamic_cast<nn::Linear&>(net[2]);
  CHECK(allclose(net(x), last(nn::ReLU()(first(x)))));
  CHECK(net.named_parameters()[2].name == "2.weight");
  CHECK_THROWS_AS(net[3], IndexError);
  CHECK_THROWS_AS(net.append(std::unique_ptr<nn::Linear>()), ValueError);
  CHECK(nn::Sequential()(x).is_same(x));
}

TEST_CASE("ModuleList owns modules of one type") {
  nn::ModuleList<nn::Linear> list;
  list.emplace(2, 2);
  list.append(nn::make<nn::Linear>(2, 3));
  Tensor x = ones({1, 2});
  for (nn::Linear& layer : list) x = layer(x);
  CHECK(x.shape() == Shape{1, 3});
  CHECK(list.named_parameters().back().name == "1.bias");
  CHECK_THROWS_AS(list[2], IndexError);
  CHECK_THROWS_AS(list.append(nullptr), ValueError);
}

TEST_CASE("CrossEntropyLoss is the mean negative log-likelihood") {
  const Tensor logits = tensor({{0.0, 0.0}, {0.0, std::log(3.0)}}, {.dtype = float64});
  const Tensor target = tensor({0, 1});
  CHECK(nn::CrossEntropyLoss()(logits, target).item() ==
        Approx((std::log(2.0) + std::log(4.0 / 3.0)) / 2.0));
  CHECK(nn::CrossEntropyLoss({}, 0)(logits, target).item() == Approx(std::log(4.0 / 3.0)));
  CHECK(nn::CrossEntropyLoss({}, -100, 0.1)(logits, target).item() >
        nn::CrossEntropyLoss()(logits, target).item());
  CHECK_THROWS_AS(nn::CrossEntropyLoss({}, -100, 2.0), ValueError);
}
