#include "support/catch.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/ops/activation.h"
#include "support/compare.h"

#include <cmath>
#include <limits>

namespace norma::test {

TEST_CASE("activations have the published values") {
  const Tensor x = tensor({-2.0, -0.5, 0.0, 1.0, 3.0}, {.dtype = float64});
  CHECK(allclose(relu(x), {0, 0, 0, 1, 3}));
  CHECK(allclose(
      gelu(x),
      {-0.04550026389635842, -0.15426876936299344, 0.0, 0.8413447460685429, 2.9959503059051097},
      {1e-12, 0}));
  CHECK(allclose(
      gelu(x, "tanh"),
      {-0.04540230591222, -0.15428599017516514, 0.0, 0.8411919906082768, 2.996362607918227},
      {1e-10, 0}));
  for (const double v : {-2.0, -0.5, 0.0, 1.0, 3.0}) {
    const Tensor one = tensor({v}, {.dtype = float64});
    CHECK(allclose(silu(one), std::vector<double>{v / (1 + std::exp(-v))}, {1e-14, 0}));
    CHECK(allclose(softplus(one), std::vector<double>{std::log1p(std::exp(v))}, {1e-14, 0}));
    CHECK(allclose(softplus(one, 2.0), std::vector<double>{std::log1p(std::exp(2 * v)) / 2},
                   {1e-14, 0}));
  }
}

TEST_CASE("activations stay finite where they should") {
  const Tensor x = tensor({-1e4, -200.0, 200.0, 1e4});
  CHECK(allclose(softplus(x), {0, 0, 200, 1e4}));
  CHECK(allclose(gelu(x), {0, 0, 200, 1e4}));
  CHECK(allclose(gelu(x, "tanh"), {0, 0, 200, 1e4}));
  CHECK(allclose(silu(x), {0, 0, 200, 1e4}));
  CHECK(allclose(sigmoid(x), {0, 0, 1, 1}));
  for (const auto& function :
       std::vector<Tensor (*)(const Tensor&)>{relu, silu, [](const Tensor& v) { return gelu(v); },
                                              [](const Tensor& v) { return gelu(v, "tanh"); },
                                              [](const Tensor& v) { return softplus(v); }}) {
    const Tensor leaf = x.clone().requires_grad_();
    CHECK(allclose(grad({function(leaf).sum()}, {leaf})[0], {0, 0, 1, 1}));
  }
}

TEST_CASE("relu has no slope at zero and passes NaN on") {
  const Tensor x = tensor({-1.0, 0.0, 2.0}, {.requires_grad = true});
  CHECK(allclose(grad({relu(x).sum()}, {x})[0], {0, 0, 1}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(allclose(relu(tensor({nan})), std::vector<double>{nan}));
}

TEST_CASE("swiglu computes the one gradient that is asked for") {
  const Tensor gate = random({4}, 1).requires_grad_();
  const Tensor up = random({4}, 2);
  const Tensor only_gate = grad({swiglu(gate, up).sum()}, {gate})[0];
  const Tensor up_leaf = up.clone().requires_grad_();
  const TensorList both = grad({swiglu(gate, up_leaf).sum()}, {gate, up_leaf});
  CHECK(bitwise_equal(only_gate, both[0]));
  CHECK(allclose(both[1], silu(gate).detach()));
}

}  // namespace norma::test
