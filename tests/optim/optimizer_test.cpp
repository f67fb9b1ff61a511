// What all optimizers share: groups, gradients, versions, state.
#include "norma/optim/optimizer.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/required_ops.h"
#include "norma/core/safetensors.h"
#include "norma/optim/adamw.h"
#include "norma/optim/sgd.h"
#include "support/catch.h"
#include "support/temporary_folder.h"

namespace norma::optim {
namespace {

using Catch::Contains;

Tensor parameter(double value, DType dtype = float64) {
  return full({2, 3}, value, {.dtype = dtype, .requires_grad = true});
}
void set_gradient(const Tensor& p, double value) {
  p.set_grad(full(p.shape(), value, {.dtype = p.dtype()}));
}

TEST_CASE("a group's options override the optimizer's, zero included", "[optimizer]") {
  const Tensor a = parameter(1.0);
  const Tensor b = parameter(1.0);
  const Tensor c = parameter(1.0);
  SGD optimizer({{.params = {a}, .lr = 0.0}, {.params = {b}, .weight_decay = 0.0}, {.params = {c}}},
                {.lr = 0.5, .weight_decay = 1.0});
  for (const Tensor& p : {a, b, c}) set_gradient(p, 1.0);
  optimizer.step();
  CHECK(a.select(0, 0).select(0, 0).item() == 1.0);
  CHECK(b.select(0, 0).select(0, 0).item() == 0.5);
  CHECK(c.select(0, 0).select(0, 0).item() == 0.0);
  // Options are filled in, and may be changed.
  CHECK(*optimizer.param_groups()[2].lr == 0.5);
  optimizer.param_groups()[2].lr = 2.0;
  optimizer.step();
  CHECK(c.select(0, 0).select(0, 0).item() == -2.0);
  optimizer.param_groups()[2].lr = -2.0;
  CHECK_THROWS_WITH(optimizer.step(), Contains("lr must be finite and at least 0; got -2"));
}

TEST_CASE("a step is not recorded, keeps the leaf, and bumps the version", "[optimizer]") {
  const Tensor p = parameter(1.0);
  AdamW optimizer(TensorList{p});
  set_gradient(p, 1.0);
  const std::uint64_t version = p.version();
  optimizer.step();
  CHECK(p.version() > version);
  CHECK(p.is_leaf());
  CHECK(p.requires_grad());
  CHECK(GradMode::is_enabled());
}

TEST_CASE("a backward after the step through values from before it is an error", "[optimizer]") {
  const Tensor p = parameter(2.0);
  SGD optimizer(TensorList{p}, {.lr = 0.1});
  const Tensor loss = p.square().sum();
  loss.backward({}, {.retain_graph = true});
  optimizer.step();
  CHECK_THROWS_AS(loss.backward(), AutogradError);
}

TEST_CASE("zero_grad removes gradients, or sets them to zero", "[optimizer]") {
  const Tensor p = parameter(1.0);
  const Tensor q = parameter(1.0);
  SGD optimizer({p, q}, {.lr = 0.1});
  set_gradient(p, 1.0);
  const Tensor kept = p.grad();
  optimizer.zero_grad(false);
  CHECK(p.grad().is_same(kept));
  CHECK(kept.to_vector<double>() == std::vector<double>(6, 0.0));
  CHECK_FALSE(q.grad().defined());
  optimizer.zero_grad();
  CHECK_FALSE(p.grad().defined());
}

TEST_CASE("gradients of any strides are taken, and those that do not fit are refused",
          "[optimizer]") {
  const Tensor p = zeros({2, 3}, {.dtype = float64, .requires_grad = true});
  SGD optimizer(TensorList{p}, {.lr = 1.0});
  p.set_grad(arange(6, {.dtype = float64}).reshape({3, 2}).t());
  optimizer.step();
  CHECK(p.to_vector<double>() == std::vector<double>{0, -2, -4, -1, -3, -5});
  p.set_grad(tensor(1.0, {.dtype = float64}).expand({2, 3}));
  optimizer.step();
  CHECK(p.to_vector<double>() == std::vector<double>{-1, -3, -5, -2, -4, -6});
}

TEST_CASE("parameters that cannot be trained are refused", "[optimizer]") {
  const Tensor p = parameter(1.0);
  const auto make = [](TensorList params) { SGD optimizer(params); };
  CHECK_THROWS_WITH(make({Tensor()}), Contains("must be defined"));
  CHECK_THROWS_AS(make({ones({2}, {.dtype = int64})}), DTypeError);
  CHECK_THROWS_WITH(make({p.square()}), Contains("must be leaves"));
  CHECK_THROWS_WITH(make({ones({2, 3}).t()}), Contains("must be contiguous"));
  CHECK_THROWS_WITH(make({p, p}), Contains("in one group, once"));
  SGD optimizer(TensorList{p});
  CHECK_THROWS_WITH(optimizer.add_param_group({.params = {p}}), Contains("in one group, once"));
  optimizer.add_param_group({.params = {parameter(2.0)}, .lr = 0.25});
  CHECK(optimizer.param_groups().size() == 2);
}

TEST_CASE("a step that throws changes nothing: the next one is the first", "[optimizer]") {
  // The second group is at fault; by then the first one has been looked at.
  const DType dtype = GENERATE(float64, bfloat16);
  const auto values = [&](bool disturbed) {
    const TensorList params = {parameter(disturbed ? 5.0 : 1.0, dtype), parameter(1.0, dtype)};
    SGD optimizer({{.params = {params[0]}}, {.params = {params[1]}}},
                  {.lr = 0.5, .momentum = 0.5, .dampening = 0.25});
    for (const Tensor& p : params) set_gradient(p, 1.0);
    if (disturbed) {
      optimizer.param_groups()[1].lr = -1.0;
      CHECK_THROWS_AS(optimizer.step(), ValueError);
      CHECK(params[0].to_vector<double>()[0] == 5.0);
      optimizer.param_groups()[1].lr = 0.5;
      // A copy of the 5 in a float32 master would bring it back.
      const NoGradGuard no_grad;
      params[0].fill_(1.0);
    }
    optimizer.step();
    optimizer.step();
    return params[0].to_vector<double>();
  };
  CHECK(values(true) == values(false));
}

/// Runs steps [begin, end) with gradients that depend on the step alone; the second parameter
/// misses every third.
void train(Optimizer& optimizer, const TensorList& params, int begin, int end) {
  for (int step = begin; step < end; ++step) {
    optimizer.zero_grad();
    set_gradient(params[0], std::sin(step));
    if (step % 3 != 2) set_gradient(params[1], std::cos(step));
    optimizer.step();
  }
}

TEST_CASE("a saved optimizer continues bit for bit, through a file", "[optimizer]") {
  const DType dtype = GENERATE(float32, float64, bfloat16);
  const bool adam = GENERATE(true, false);
  const auto make = [&](const TensorList& params) -> std::unique_ptr<Optimizer> {
    const std::vector<ParamGroup> groups = {{.params = {params[0]}, .lr = 0.02},
                                            {.params = {params[1]}}};
    if (adam) return std::make_unique<AdamW>(groups);
    return std::make_unique<SGD>(groups, SGDOptions{.lr = 0.1, .momentum = 0.9});
  };
  const TensorList straight = {parameter(1.0, dtype), parameter(-1.0, dtype)};
  const auto whole = make(straight);
  train(*whole, straight, 0, 14);

  const TensorList first = {parameter(1.0, dtype), parameter(-1.0, dtype)};
  const auto before = make(first);
  train(*before, first, 0, 7);
  before->param_groups()[0].lr = 0.02;
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "optimizer.safetensors";
  StateDict state = with_prefix(before->state_dict(), "optimizer.");
  for (std::size_t i = 0; i < 2; ++i) state["param." + std::to_string(i)] = first[i];
  safetensors::save_file(state, path);

  const TensorList second = {parameter(0.0, dtype), parameter(0.0, dtype)};
  const auto after = make(second);
  after->param_groups()[0].lr = 123.0;  // comes back from the state
  const StateDict loaded = safetensors::load_file(path).tensors;
  {
    const NoGradGuard no_grad;
    for (std::size_t i = 0; i < 2; ++i) second[i].copy_(loaded.at("param." + std::to_string(i)));
  }
  after->load_state_dict(without_prefix(loaded, "optimizer."));
  train(*after, second, 7, 14);
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(second[i].to_vector<double>() == straight[i].to_vector<double>());
}

TEST_CASE("a loaded state is a copy", "[optimizer]") {
  const TensorList params = {parameter(1.0), parameter(1.0)};
  AdamW a(params);
  train(a, params, 0, 2);
  const TensorList others = {parameter(1.0), parameter(1.0)};
  AdamW b(others);
  b.load_state_dict(a.state_dict());
  const auto before = a.state_dict().at("state.0.exp_avg").to_vector<double>();
  train(b, others, 2, 4);
  CHECK(a.state_dict().at("state.0.exp_avg").to_vector<double>() == before);
}

TEST_CASE("a state of something else is refused, and nothing changes", "[optimizer]") {
  const TensorList params = {parameter(1.0), parameter(1.0)};
  AdamW optimizer(params);
  train(optimizer, params, 0, 3);
  StateDict good;
  for (const auto& [key, value] : optimizer.state_dict()) good[key] = value.clone();
  const auto reason = [&](const StateDict& state) {
    try {
      optimizer.load_state_dict(state);
    } catch (const ValueError& error) {
      for (const auto& [key, value] : optimizer.state_dict())
        REQUIRE(value.to_vector<double>() == good.at(key).to_vector<double>());
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(reason(good) == "accepted");
  StateDict state = good;
  state.erase("state.1.exp_avg_sq");
  CHECK_THAT(reason(state), Contains("must hold \"state.1.exp_avg_sq\""));
  state = good;
  state["state.0.exp_avg"] = zeros({3, 2});
  CHECK_THAT(reason(state), Contains("\"state.0.exp_avg\" must have shape [2, 3]; got [3, 2]"));
  state = good;
  state["state.2.step"] = tensor(1);
  CHECK_THAT(reason(state), Contains("belong"));
  state = good;
  state["param_groups.0.lr"] = tensor(-1.0);
  CHECK_THAT(reason(state), Contains("lr must be"));
  CHECK_THAT(reason(SGD(TensorList{parameter(0.0)}).state_dict()),
             Contains("must have 2 parameters; got a state with 1"));
  CHECK_THAT(reason({}), Contains("must hold"));
}

TEST_CASE("state follows a parameter that changes its dtype", "[optimizer]") {
  const Tensor p = parameter(1.0, float32);
  AdamW optimizer(TensorList{p}, {.lr = 0.1, .weight_decay = 0.0});
  set_gradient(p, 1.0);
  optimizer.step();
  StateDict state = optimizer.state_dict();
  CHECK(state.at("state.0.exp_avg").dtype() == float32);
  // The same history over float64 parameters.
  const Tensor q = parameter(0.9, float64);
  AdamW wide(TensorList{q}, {.lr = 0.1, .weight_decay = 0.0});
  wide.load_state_dict(state);
  CHECK(wide.state_dict().at("state.0.exp_avg").dtype() == float64);
  set_gradient(q, 1.0);
  wide.step();
  CHECK(q.to_vector<double>()[0] == Approx(0.8));
}

}  // namespace
}  // namespace norma::optim
