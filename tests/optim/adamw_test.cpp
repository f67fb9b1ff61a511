#include "norma/optim/adamw.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "support/catch.h"

#include <cmath>
#include <random>

namespace norma::optim {
namespace {

using Catch::Contains;

std::vector<double> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  return values;
}

/// The formula in adamw.h, one value at a time.
struct Reference {
  double lr, beta1, beta2, eps, weight_decay;
  std::vector<double> theta, m, v;
  int t = 0;

  void step(const std::vector<double>& grad) {
    ++t;
    m.resize(theta.size());
    v.resize(theta.size());
    for (std::size_t i = 0; i < theta.size(); ++i) {
      theta[i] *= 1 - lr * weight_decay;
      m[i] = beta1 * m[i] + (1 - beta1) * grad[i];
      v[i] = beta2 * v[i] + (1 - beta2) * grad[i] * grad[i];
      const double m_hat = m[i] / (1 - std::pow(beta1, t));
      const double v_hat = v[i] / (1 - std::pow(beta2, t));
      theta[i] -= lr * m_hat / (std::sqrt(v_hat) + eps);
    }
  }
};

TEST_CASE("AdamW follows its formula", "[adamw]") {
  const DType dtype = GENERATE(float64, float32);
  const double tolerance = dtype == float64 ? 1e-14 : 2e-6;
  // More than one chunk and no multiple of a vector.
  const std::size_t count = 40001;
  Reference reference{1e-2, 0.9, 0.98, 1e-8, 0.1, random_values(count, 1), {}, {}};
  const Tensor parameter = from_values(reference.theta, {static_cast<std::int64_t>(count)},
                                       {.dtype = dtype, .requires_grad = true});
  AdamW optimizer(TensorList{parameter}, {.lr = 1e-2, .betas = {0.9, 0.98}, .weight_decay = 0.1});
  for (unsigned step = 0; step < 5; ++step) {
    const std::vector<double> grad = random_values(count, 10 + step);
    reference.step(grad);
    parameter.set_grad(from_values(grad, parameter.shape(), {.dtype = dtype}));
    optimizer.step();
  }
  const std::vector<double> got = parameter.to_vector<double>();
  for (std::size_t i = 0; i < count; ++i)
    REQUIRE(std::abs(got[i] - reference.theta[i]) <=
            tolerance * (1 + std::abs(reference.theta[i])));
}

TEST_CASE("the first step of AdamW moves by lr against the sign of the gradient", "[adamw]") {
  const Tensor parameter = tensor({1.0, 1.0, 1.0}, {.dtype = float64, .requires_grad = true});
  parameter.set_grad(tensor({1e-3, -500.0, 0.0}, {.dtype = float64}));
  const bool maximize = GENERATE(false, true);
  AdamW(TensorList{parameter}, {.lr = 0.1, .weight_decay = 0.0, .maximize = maximize}).step();
  const std::vector<double> got = parameter.to_vector<double>();
  const double sign = maximize ? -1 : 1;
  CHECK(got[0] == Approx(1 - sign * 0.1).epsilon(1e-5));
  CHECK(got[1] == Approx(1 + sign * 0.1).epsilon(1e-10));
  CHECK(got[2] == 1.0);
}

TEST_CASE("16-bit parameters keep what is too small for them in float32 masters", "[adamw]") {
  const DType dtype = GENERATE(bfloat16, float16);
  const Tensor parameter = full({3}, 256.0, {.dtype = dtype, .requires_grad = true});
  AdamW optimizer(TensorList{parameter}, {.lr = 0.01, .weight_decay = 0.0});
  // Each step moves by 0.01; bfloat16 counts in steps of 1 or 2 there, float16 in steps of 0.125 or
  // 0.25.
  for (int step = 0; step < 300; ++step) {
    parameter.set_grad(ones({3}, {.dtype = dtype}));
    optimizer.step();
  }
  CHECK(optimizer.state_dict().at("state.0.master").to_vector<double>()[0] ==
        Approx(253.0).margin(1e-3));
  CHECK(parameter.to_vector<double>() == std::vector<double>{253, 253, 253});
  CHECK(optimizer.state_dict().at("state.0.exp_avg").dtype() == float32);
}

TEST_CASE("each parameter counts its own steps, and none without a gradient moves", "[adamw]") {
  const Tensor a = tensor({1.0}, {.dtype = float64, .requires_grad = true});
  const Tensor b = tensor({1.0}, {.dtype = float64, .requires_grad = true});
  AdamW optimizer({a, b}, {.lr = 0.1, .weight_decay = 0.0});
  a.set_grad(tensor({1.0}, {.dtype = float64}));
  optimizer.step();
  CHECK(a.item() == Approx(0.9));
  CHECK(b.item() == 1.0);
  CHECK_FALSE(optimizer.state_dict().contains("state.1.step"));
  b.set_grad(tensor({1.0}, {.dtype = float64}));
  optimizer.step();
  CHECK(a.item() == Approx(0.8));
  CHECK(b.item() == Approx(0.9));  // a full first step, as for a at its own t = 1
  CHECK(optimizer.state_dict().at("state.0.step").item() == 2);
  CHECK(optimizer.state_dict().at("state.1.step").item() == 1);
}

TEST_CASE("a gradient scale acts on every gradient, on both moments", "[adamw]") {
  const Tensor a = tensor({1.0, 2.0}, {.dtype = float64, .requires_grad = true});
  const Tensor b = tensor({1.0, 2.0}, {.dtype = float64, .requires_grad = true});
  AdamW first(TensorList{a});
  AdamW second(TensorList{b});
  a.set_grad(tensor({0.25, -0.5}, {.dtype = float64}));
  b.set_grad(tensor({256.0, -512.0}, {.dtype = float64}));
  first.step();
  second.step(tensor(1.0 / 1024));
  CHECK(a.to_vector<double>() == b.to_vector<double>());
  CHECK(first.state_dict().at("state.0.exp_avg_sq").to_vector<double>() ==
        second.state_dict().at("state.0.exp_avg_sq").to_vector<double>());
  CHECK_THROWS_WITH(second.step(tensor({1.0, 2.0})), Contains("grad_scale must be one"));
}

TEST_CASE("AdamW refuses options out of range or of another optimizer", "[adamw]") {
  const Tensor p = ones({2}, {.requires_grad = true});
  const TensorList params = {p};
  CHECK_THROWS_WITH(AdamW(params, {.lr = -1.0}),
                    Contains("[adamw] lr must be finite and at least 0; got -1"));
  CHECK_THROWS_WITH(AdamW(params, {.lr = std::nan("")}), Contains("lr must be finite"));
  CHECK_THROWS_WITH(AdamW(params, {.betas = {0.9, 1.0}}),
                    Contains("betas must be in [0, 1); got 1"));
  CHECK_THROWS_WITH(AdamW(params, {.eps = -1e-8}), Contains("eps"));
  CHECK_THROWS_WITH(AdamW(params, {.weight_decay = -0.1}), Contains("weight_decay"));
  CHECK_THROWS_WITH(AdamW(std::vector<ParamGroup>{{.params = params, .momentum = 0.9}}),
                    Contains("options of this optimizer only; got momentum"));
  CHECK_THROWS_WITH(AdamW(TensorList{}), Contains("must have parameters"));
}

}  // namespace
}  // namespace norma::optim
