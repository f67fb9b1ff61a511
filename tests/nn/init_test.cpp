// Initializers: statistics, bounds, determinism, errors.
#include "norma/nn/init.h"

#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/ops/cast.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"
#include "support/catch.h"
#include "support/compare.h"

#include <cmath>

using namespace norma;
namespace init = norma::nn::init;
using norma::test::allclose;
using norma::test::bitwise_equal;

namespace {

struct Moments {
  double mean = 0, std = 0, low = 0, high = 0;
};

Moments moments(const Tensor& tensor) {
  const std::vector<double> values = tensor.to_vector<double>();
  Moments m{.low = values[0], .high = values[0]};
  for (const double value : values) {
    m.mean += value;
    m.low = std::min(m.low, value);
    m.high = std::max(m.high, value);
  }
  m.mean /= static_cast<double>(values.size());
  for (const double value : values) m.std += (value - m.mean) * (value - m.mean);
  m.std = std::sqrt(m.std / static_cast<double>(values.size()));
  return m;
}

/// U(-limit, limit) in mean, spread and bounds; 40,000 draws.
void check_uniform(const Tensor& tensor, double limit) {
  const Moments m = moments(tensor);
  CHECK(std::abs(m.mean) < 0.02 * limit);
  CHECK(m.std == Approx(limit / std::sqrt(3.0)).epsilon(0.02));
  CHECK(m.low >= -limit);
  CHECK(m.high <= limit);
  CHECK(m.high > 0.999 * limit);
}

void check_normal(const Tensor& tensor, double std) {
  const Moments m = moments(tensor);
  CHECK(std::abs(m.mean) < 0.03 * std);
  CHECK(m.std == Approx(std).epsilon(0.02));
  CHECK(m.high > 3.0 * std);
}

}  // namespace

TEST_CASE("calculate_gain gives PyTorch's table") {
  using enum init::Nonlinearity;
  CHECK(init::calculate_gain(linear) == 1.0);
  CHECK(init::calculate_gain(sigmoid) == 1.0);
  CHECK(init::calculate_gain(tanh) == Approx(5.0 / 3.0));
  CHECK(init::calculate_gain(relu) == Approx(std::sqrt(2.0)));
  CHECK(init::calculate_gain(leaky_relu) == Approx(std::sqrt(2.0 / 1.0001)));
  CHECK(init::calculate_gain(leaky_relu, std::sqrt(5.0)) == Approx(std::sqrt(1.0 / 3.0)));
  CHECK(init::calculate_gain(selu) == 0.75);
}

TEST_CASE("initializers draw from the distribution they name") {
  manual_seed(3);
  const Tensor w = empty({100, 400}, {.dtype = float64});
  check_uniform(init::xavier_uniform_(w), std::sqrt(6.0 / 500.0));
  check_uniform(init::xavier_uniform_(w, 2.0), 2.0 * std::sqrt(6.0 / 500.0));
  check_normal(init::xavier_normal_(w), std::sqrt(2.0 / 500.0));
  check_uniform(init::kaiming_uniform_(w, std::sqrt(5.0)), 1.0 / std::sqrt(400.0));
  check_uniform(init::kaiming_uniform_(w, 0.0, init::FanMode::fan_out, init::Nonlinearity::relu),
                std::sqrt(6.0 / 100.0));
  check_normal(init::kaiming_normal_(w), std::sqrt(2.0 / 400.0));
  check_normal(init::normal_(w, 0.0, 0.02), 0.02);
  const Moments shifted = moments(init::normal_(w, 5.0, 2.0));
  CHECK(shifted.mean == Approx(5.0).epsilon(0.01));
  const Moments uniform = moments(init::uniform_(w, 2.0, 4.0));
  CHECK(uniform.mean == Approx(3.0).epsilon(0.01));
  CHECK(uniform.low >= 2.0);
  CHECK(uniform.high <= 4.0);
  CHECK(moments(init::ones_(w)).mean == 1.0);
  CHECK(moments(init::constant_(w, 0.5)).high == 0.5);
  CHECK(moments(init::zeros_(w)).high == 0.0);
}

TEST_CASE("the receptive field counts in the fans") {
  manual_seed(4);
  check_uniform(init::xavier_uniform_(empty({50, 40, 5, 4})), std::sqrt(6.0 / (20.0 * 90.0)));
}

TEST_CASE("trunc_normal_ is a normal distribution within absolute bounds") {
  manual_seed(5);
  const Tensor w = empty({200, 200});
  const Moments m = moments(init::trunc_normal_(w, 0.0, 1.0, -1.0, 1.0));
  CHECK(m.low >= -1.0);
  CHECK(m.high <= 1.0);
  CHECK(m.high > 0.999);
  CHECK(std::abs(m.mean) < 0.01);
  CHECK(m.std == Approx(0.53956).epsilon(0.01));  // sqrt(1 - 2 phi(1) / (2 Phi(1) - 1))
  check_normal(init::trunc_normal_(w, 0.0, 0.02), 0.02);
  // One-sided: the mean of N(0, 1) given x > 1 is phi(1) / (1 - Phi(1)).
  CHECK(moments(init::trunc_normal_(w, 0.0, 1.0, 1.0, 50.0)).mean == Approx(1.52514).epsilon(0.01));
}

TEST_CASE("orthogonal_ has orthonormal rows or columns") {
  manual_seed(6);
  const Tensor wide = init::orthogonal_(empty({5, 8}, {.dtype = float64}));
  CHECK(allclose(matmul(wide, wide.t()), eye(5), {1e-12, 1e-12}));
  const Tensor tall = init::orthogonal_(empty({8, 5}, {.dtype = float64}), 3.0);
  CHECK(allclose(matmul(tall.t(), tall), eye(5).to(float64).mul_(9.0), {1e-12, 1e-12}));
}

TEST_CASE("eye_ and dirac_ pass their input on") {
  CHECK(allclose(init::eye_(empty({2, 3})), {1, 0, 0, 0, 1, 0}));
  CHECK(allclose(init::eye_(empty({3, 2}, {.dtype = float64})), {1, 0, 0, 1, 0, 0}));
  CHECK(allclose(init::dirac_(empty({2, 2, 3})), {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}));
  // The middle of a kernel [2, 3] is (1, 1); the third output channel has no input of its own.
  const Tensor w = init::dirac_(empty({3, 2, 2, 3}));
  CHECK(w.sum().item() == 2.0);
  CHECK(w[0][0][1][1].item() == 1.0);
  CHECK(w[1][1][1][1].item() == 1.0);
  // Two groups: the second starts again with the first input channel.
  const Tensor grouped = init::dirac_(empty({4, 2, 1}), 2);
  CHECK(allclose(grouped, {1, 0, 0, 1, 1, 0, 0, 1}));
}

TEST_CASE("sparse_ leaves the same number of values in each column") {
  manual_seed(8);
  const Tensor w = init::sparse_(empty({101, 300}), 0.3, 2.0);
  const Tensor kept = (w != 0.0).to(float32).sum({0});
  CHECK(allclose(kept, full({300}, 70.0)));  // of 101 rows ceil(30.3) are zero
  // All rows lose some: places are random.
  CHECK((w != 0.0).to(float32).sum({1}).to_vector<double>()[0] < 300.0);
  CHECK(moments(w).std == Approx(2.0 * std::sqrt(70.0 / 101.0)).epsilon(0.02));
  CHECK(moments(init::sparse_(w, 1.0)).high == 0.0);
}

TEST_CASE("initializers repeat with the seed, work on parameters and reach strided memory") {
  const auto draw = [] {
    manual_seed(7);
    const Tensor w = empty({17, 9}, {.requires_grad = true});
    init::kaiming_normal_(w);
    return w;
  };
  const Tensor first = draw();
  CHECK(bitwise_equal(first.detach(), draw().detach()));
  CHECK(first.is_leaf());
  CHECK(first.requires_grad());
  CHECK(first.version() > 0);
  init::xavier_normal_(first);
  CHECK_FALSE(static_cast<bool>(bitwise_equal(first.detach(), draw().detach())));

  const Tensor base = zeros({4, 6});
  init::ones_(base.t());
  CHECK(allclose(base, ones({4, 6})));
}

TEST_CASE("initializers refuse what they cannot fill") {
  CHECK_THROWS_AS(init::xavier_uniform_(empty({3})), ValueError);
  CHECK_THROWS_AS(init::orthogonal_(empty({3})), ValueError);
  CHECK_THROWS_AS(init::normal_(empty({3}), 0.0, -1.0), ValueError);
  CHECK_THROWS_AS(init::uniform_(empty({3}), 1.0, 0.0), ValueError);
  CHECK_THROWS_AS(init::uniform_(zeros({3}, {.dtype = int64})), DTypeError);
  CHECK_THROWS_AS(init::trunc_normal_(empty({3}), 0.0, 1.0, 2.0, -2.0), ValueError);
  CHECK_THROWS_AS(init::zeros_(Tensor()), ValueError);
  CHECK_THROWS_AS(init::eye_(empty({3})), ValueError);
  CHECK_THROWS_AS(init::dirac_(empty({3, 3})), ValueError);
  CHECK_THROWS_AS(init::dirac_(empty({3, 3, 1}), 2), ValueError);
  CHECK_THROWS_AS(init::sparse_(empty({3, 3}), 1.5), ValueError);
}
