// The registry: names, order, tying, state, modes, conversions and text of modules.
#include "norma/nn/module.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/nn/dropout.h"
#include "norma/nn/embedding.h"
#include "norma/nn/init.h"
#include "norma/nn/linear.h"
#include "norma/nn/norm.h"
#include "norma/nn/sequential.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduction.h"
#include "support/catch.h"
#include "support/compare.h"

#include <sstream>

using namespace norma;
using norma::test::allclose;
using norma::test::bitwise_equal;

namespace {

struct Inner : nn::Layer<Inner> {
  nn::Linear fc{2, 3};
  nn::LayerNorm norm{3};
  Inner() {
    register_module("fc", fc);
    register_module("norm", norm);
  }
  Tensor forward(const Tensor& x) { return norm(fc(x)); }
};

struct Outer : nn::Layer<Outer> {
  Tensor scale = ones({1});
  Tensor steps = zeros({1}, {.dtype = int64});
  Tensor cache = zeros({2});
  Inner inner;
  nn::Dropout dropout{0.5};
  Outer() {
    register_module("inner", inner);
    register_parameter("scale", scale, nn::ParameterKind::scalar);
    register_buffer("steps", steps);
    register_buffer("cache", cache, false);
    register_module("dropout", dropout);
  }
  Tensor forward(const Tensor& x) { return dropout(inner(x)) * scale; }
};

/// A language model's tie: one table for embedding and output.
struct Tied : nn::Layer<Tied> {
  nn::Embedding embedding{5, 4};
  nn::Linear head{4, 5, false};
  Tied() {
    register_module("embedding", embedding);
    register_module("head", head);
    head.weight = embedding.weight;
  }
  Tensor forward(const Tensor& index) { return head(embedding(index)); }
};

template <class Entries>
std::vector<std::string> names(const Entries& entries) {
  std::vector<std::string> result;
  for (const auto& entry : entries) result.push_back(entry.name);
  return result;
}
std::vector<std::string> names(const nn::StateDict& state) {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : state) result.push_back(name);
  return result;
}
using Names = std::vector<std::string>;

template <class F>
std::string message_of(const F& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("named_parameters lists depth-first in the order of registration, with kinds") {
  Outer model;
  const auto parameters = model.named_parameters();
  CHECK(names(parameters) ==
        Names{"scale", "inner.fc.weight", "inner.fc.bias", "inner.norm.weight", "inner.norm.bias"});
  using Kind = nn::ParameterKind;
  const std::vector<Kind> kinds{Kind::scalar, Kind::matrix, Kind::bias, Kind::norm, Kind::norm};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    CHECK(parameters[i].kind == kinds[i]);
    CHECK(parameters[i].tensor.requires_grad());
  }
  CHECK(model.parameters().size() == 5);
  CHECK(model.num_parameters() == 1 + 6 + 3 + 3 + 3);
  model.inner.requires_grad_(false);
  CHECK(model.num_parameters(true) == 1);
}

TEST_CASE("buffers, children and modules") {
  Outer model;
  CHECK(names(model.named_buffers()) == Names{"steps", "cache"});
  CHECK(names(model.named_children()) == Names{"inner", "dropout"});
  CHECK(names(model.named_modules()) == Names{"", "inner", "inner.fc", "inner.norm", "dropout"});
  CHECK(model.modules().front() == &model);
  CHECK(model.children()[1] == &model.dropout);
}

TEST_CASE("registration refuses duplicate and invalid names and wrong tensors") {
  struct Open : nn::Layer<Open> {
    Tensor a = ones({2}), b = ones({2}), index = zeros({2}, {.dtype = int64}), absent;
    nn::Dropout child;
    Tensor forward(const Tensor& x) { return x; }
  } module;
  const auto matrix = nn::ParameterKind::matrix;
  module.register_parameter("a", module.a, matrix);
  CHECK_THROWS_AS(module.register_parameter("a", module.b, matrix), ValueError);
  CHECK_THROWS_AS(module.register_buffer("a", module.b), ValueError);
  CHECK_THROWS_AS(module.register_module("a", module.child), ValueError);
  CHECK_THROWS_AS(module.register_parameter("", module.b, matrix), ValueError);
  CHECK_THROWS_AS(module.register_parameter("x.y", module.b, matrix), ValueError);
  CHECK_THROWS_AS(module.register_parameter("none", module.absent, matrix), ValueError);
  CHECK_THROWS_AS(module.register_parameter("index", module.index, matrix), DTypeError);
  CHECK_THROWS_AS(module.register_module("self", module), ValueError);
  CHECK_THAT(message_of([&] { module.register_parameter("a", module.b, matrix); }),
             Catch::Matchers::StartsWith("[register_parameter] names must be unique"));
  Tensor computed = module.a * 2.0;
  CHECK_THROWS_AS(module.register_parameter("computed", computed, matrix), ValueError);
}

TEST_CASE("state_dict holds persistent state under every name and shares data") {
  Outer model;
  const nn::StateDict state = model.state_dict();
  CHECK(names(state) == Names{"scale", "steps", "inner.fc.weight", "inner.fc.bias",
                              "inner.norm.weight", "inner.norm.bias"});
  CHECK(state.at("scale").raw_data() == model.scale.raw_data());
  CHECK_FALSE(state.at("scale").requires_grad());
  CHECK_THROWS_AS(state.at("nothing"), ValueError);

  Tied tied;
  CHECK(names(tied.named_parameters()) == Names{"embedding.weight"});
  CHECK(names(tied.state_dict()) == Names{"embedding.weight", "head.weight"});
}

TEST_CASE("load_state_dict copies in place and converts") {
  manual_seed(1);
  Outer source, target;
  source.to(float64);
  const Tensor held = target.inner.fc.weight;
  const nn::LoadReport report = target.load_state_dict(source.state_dict());
  CHECK(report.ok());
  CHECK(held.is_same(target.inner.fc.weight));
  CHECK(held.dtype() == float32);
  CHECK(held.requires_grad());
  CHECK(allclose(held, source.inner.fc.weight));
  CHECK_FALSE(held.raw_data() == source.inner.fc.weight.raw_data());
}

TEST_CASE("a strict load lists everything that does not fit, and changes nothing") {
  Outer model;
  const Tensor before = model.scale.detach().clone();
  nn::StateDict state;
  state.insert("scale", full({1}, 7.0));
  state.insert("inner.fc.weight", zeros({3, 4}));
  state.insert("inner.fc.bias", zeros({3}));
  state.insert("inner.fc.extra", zeros({3}));
  const std::string text = message_of([&] { model.load_state_dict(state); });
  CHECK_THAT(text, Catch::Contains("[load_state_dict]"));
  CHECK_THAT(text,
             Catch::Contains(
                 "shape of \"inner.fc.weight\": [3, 4] in the dictionary, [3, 2] in the module"));
  CHECK_THAT(text, Catch::Contains("missing: steps, inner.norm.weight, inner.norm.bias"));
  CHECK_THAT(text, Catch::Contains("unexpected: inner.fc.extra"));
  CHECK(bitwise_equal(model.scale.detach(), before));

  // Shapes are an error in either mode; names are reported.
  CHECK_THROWS_AS(model.load_state_dict(state, false), ValueError);
  state.erase("inner.fc.weight");
  const nn::LoadReport report = model.load_state_dict(state, false);
  CHECK(report.missing ==
        Names{"steps", "inner.fc.weight", "inner.norm.weight", "inner.norm.bias"});
  CHECK(report.unexpected == Names{"inner.fc.extra"});
  CHECK(model.scale.item() == 7.0);
}

TEST_CASE("tied weights stay tied through load and to") {
  manual_seed(2);
  Tied source, target;
  target.load_state_dict(source.state_dict());
  CHECK(target.head.weight.is_same(target.embedding.weight));
  CHECK(bitwise_equal(target.head.weight.detach(), source.head.weight.detach()));
  target.to(float64);
  CHECK(target.head.weight.is_same(target.embedding.weight));
  CHECK(target.head.weight.dtype() == float64);

  // Both uses add to the one gradient.
  target.zero_grad();
  target(tensor({1, 2})).sum().backward();
  const Tensor& table = target.embedding.weight;
  const Tensor column_sums = table.detach().sum({0});
  const Tensor by_head = (table.detach()[1] + table.detach()[2]).expand({5, 4});
  CHECK(allclose(table.grad()[0], by_head[0]));
  CHECK(allclose(table.grad()[1], by_head[1] + column_sums));
}

TEST_CASE("to converts floating-point state in place, gradients included") {
  Outer model;
  model.eval();
  const Tensor held = model.scale;
  // Squared: the plain sum of a LayerNorm's outputs is 0 but for rounding, and so is its gradient.
  model(ones({1, 2})).square().sum().backward();
  REQUIRE(held.grad().defined());
  model.to(float64);
  CHECK(held.is_same(model.scale));
  CHECK(held.dtype() == float64);
  CHECK(held.grad().dtype() == float64);
  CHECK(held.requires_grad());
  CHECK(model.cache.dtype() == float64);
  CHECK(model.steps.dtype() == int64);
  // The converted module works and accumulates on.
  const double before = held.grad().item();
  model(ones({1, 2}, {.dtype = float64})).square().sum().backward();
  CHECK(before > 1.0);
  CHECK(held.grad().item() == Approx(2.0 * before).epsilon(1e-5));
  CHECK_THROWS_AS(model.to(int64), DTypeError);
}

TEST_CASE("a graph from before to() is refused, and leaves the gradient as it was") {
  Outer model;
  const Tensor before = model.scale + 1.0;
  model.to(float64);
  CHECK_THROWS_WITH(before.sum().backward(),
                    Catch::Contains("a leaf must keep shape, dtype and device"));
  CHECK_FALSE(model.scale.grad().defined());
  model(ones({1, 2}, {.dtype = float64})).square().sum().backward();
  CHECK(model.scale.grad().dtype() == float64);
}

TEST_CASE("train, eval, apply, zero_grad") {
  Outer model;
  CHECK(model.dropout.is_training());
  model.eval();
  CHECK_FALSE(model.is_training());
  CHECK_FALSE(model.dropout.is_training());
  model.train();
  CHECK(model.dropout.is_training());

  std::vector<nn::Module*> order;
  model.apply([&](nn::Module& module) {
    order.push_back(&module);
    if (auto* linear = dynamic_cast<nn::Linear*>(&module)) nn::init::zeros_(linear->weight);
  });
  CHECK(order == std::vector<nn::Module*>{&model.inner.fc, &model.inner.norm, &model.inner,
                                          &model.dropout, &model});
  CHECK(model.inner.fc.weight.abs().sum().item() == 0.0);

  model(ones({1, 2})).sum().backward();
  model.zero_grad(false);
  CHECK(model.scale.grad().item() == 0.0);
  model.zero_grad();
  CHECK_FALSE(model.scale.grad().defined());
}

TEST_CASE("print shows the tree as PyTorch does, with runs of equal layers folded") {
  Outer model;
  std::ostringstream text;
  text << model;
  CHECK(text.str() ==
        "Outer(\n"
        "  (inner): Inner(\n"
        "    (fc): Linear(in_features=2, out_features=3, bias=True)\n"
        "    (norm): LayerNorm((3,), eps=1e-05, elementwise_affine=True)\n"
        "  )\n"
        "  (dropout): Dropout(p=0.5)\n"
        ")");
  nn::ModuleList<nn::Linear> list;
  for (int i = 0; i < 3; ++i) list.emplace(2, 2);
  list.emplace(2, 1);
  CHECK(list.str() ==
        "ModuleList(\n"
        "  (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)\n"
        "  (3): Linear(in_features=2, out_features=1, bias=True)\n"
        ")");
}
