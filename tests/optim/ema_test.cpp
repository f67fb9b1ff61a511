#include "norma/optim/ema.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "support/catch.h"

#include <cmath>
#include <optional>

namespace norma::optim {
namespace {

using Catch::Contains;

void set(const Tensor& p, double value) {
  const NoGradGuard no_grad;
  p.fill_(value);
}
double first(const Tensor& p) { return p.to_vector<double>()[0]; }

TEST_CASE("the average follows its formula", "[ema]") {
  const DType dtype = GENERATE(float64, float32, bfloat16);
  const bool warmup = GENERATE(false, true);
  const Tensor p = full({5}, 1.0, {.dtype = dtype, .requires_grad = true});
  EMA ema({p}, {.decay = 0.9, .warmup = warmup});
  double expected = 1.0;
  for (int n = 1; n <= 100; ++n) {
    const double value = 1.0 + n % 4;  // exact in every dtype
    set(p, value);
    ema.update();
    const double decay = warmup ? std::min(0.9, (1.0 + n) / (10.0 + n)) : 0.9;
    expected = decay * expected + (1 - decay) * value;
    REQUIRE(first(ema.averages()[0]) == Approx(expected).epsilon(dtype == float64 ? 1e-13 : 2e-6));
  }
  CHECK(ema.updates() == 100);
  CHECK(ema.averages()[0].dtype() == (dtype == float64 ? float64 : float32));
  CHECK_FALSE(ema.averages()[0].requires_grad());
}

TEST_CASE("apply puts the averages in for a scope, and the weights back bit for bit", "[ema]") {
  const Tensor p = full({3}, 0.0, {.requires_grad = true});
  EMA ema({p}, {.decay = 0.5});
  set(p, 0.1);
  ema.update();
  const std::vector<float> weights = p.to_vector<float>();
  {
    const auto applied = ema.apply();
    CHECK(first(p) == Approx(0.05));
    CHECK_THROWS_WITH(ema.update(), Contains("while the averages are applied"));
    CHECK_THROWS_WITH(ema.apply(), Contains("while the averages are applied"));
  }
  CHECK(p.to_vector<float>() == weights);
  CHECK(p.requires_grad());
  CHECK(p.is_leaf());
  try {
    const auto applied = ema.apply();
    throw std::runtime_error("evaluation failed");
  } catch (const std::runtime_error&) {
  }
  CHECK(p.to_vector<float>() == weights);
  ema.copy_to_params();
  CHECK(first(p) == Approx(0.05));
}

TEST_CASE("swapping weights under a graph is noticed", "[ema]") {
  const Tensor p = full({3}, 2.0, {.requires_grad = true});
  EMA ema({p});
  const Tensor loss = p.square().sum();
  { const auto applied = ema.apply(); }
  CHECK_THROWS_AS(loss.backward(), AutogradError);
}

TEST_CASE("a saved average continues", "[ema]") {
  const Tensor p = full({2}, 1.0, {.dtype = float64, .requires_grad = true});
  EMA whole({p}, {.decay = 0.99, .warmup = true});
  std::optional<EMA> part(std::in_place, TensorList{p}, EMAOptions{.decay = 0.99, .warmup = true});
  for (int n = 0; n < 20; ++n) {
    if (n == 10) {
      StateDict state;
      for (const auto& [key, value] : part->state_dict()) state[key] = value.clone();
      set(p, -50.0);  // what it starts from must not matter
      part.emplace(TensorList{p}, EMAOptions{.decay = 0.99, .warmup = true});
      part->load_state_dict(state);
    }
    set(p, std::sin(n));
    whole.update();
    part->update();
  }
  CHECK(part->averages()[0].to_vector<double>() == whole.averages()[0].to_vector<double>());
  EMA other({p, zeros({3})});
  CHECK_THROWS_WITH(other.load_state_dict(whole.state_dict()), Contains("must hold \"average.1\""));
}

TEST_CASE("EMA refuses what it cannot average", "[ema]") {
  CHECK_THROWS_WITH(EMA({}), Contains("there must be parameters"));
  CHECK_THROWS_WITH(EMA({ones({1})}, {.decay = 1.0}), Contains("decay must be in [0, 1)"));
  CHECK_THROWS_AS(EMA({ones({1}, {.dtype = int64})}), DTypeError);
  CHECK_THROWS_WITH(EMA({ones({2, 3}).t()}), Contains("contiguous"));
}

}  // namespace
}  // namespace norma::optim
