#include "support/catch.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/softmax.h"
#include "support/compare.h"

#include <cmath>
#include <limits>

namespace norma::test {

TEST_CASE("softmax of known values") {
  const Tensor x = tensor({{0.0, std::log(3.0)}, {5.0, 5.0}});
  CHECK(allclose(softmax(x, 1), {0.25, 0.75, 0.5, 0.5}));
  CHECK(
      allclose(log_softmax(x, 1), {std::log(0.25), std::log(0.75), std::log(0.5), std::log(0.5)}));
  CHECK(allclose(softmax(x, 0).sum({0}), {1.0, 1.0}));
}

TEST_CASE("softmax neither overflows nor loses small differences of large numbers") {
  const Tensor x = tensor({10000.0, 10001.0, -10000.0});
  CHECK(allclose(softmax(x, 0), {1 / (1 + std::exp(1.0)), 1 / (1 + std::exp(-1.0)), 0.0}));
  CHECK(allclose(log_softmax(x, 0), {-std::log1p(std::exp(1.0)), -std::log1p(std::exp(-1.0)),
                                     -20001.0 - std::log1p(std::exp(-1.0))}));
  const Tensor half = tensor({60000.0, 60000.0}, {.dtype = float16});
  CHECK(allclose(softmax(half, 0), {0.5, 0.5}));
}

TEST_CASE("softmax of -inf: zero beside a number, NaN alone, as in PyTorch") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = tensor({{-inf, 0.0, 0.0}, {-inf, -inf, -inf}});
  CHECK(allclose(softmax(x, 1), {0, 0.5, 0.5, nan, nan, nan}));
  CHECK(allclose(log_softmax(x, 1), {-inf, std::log(0.5), std::log(0.5), nan, nan, nan}));
  const Tensor leaf = tensor({-inf, 0.0, 0.0}, {.requires_grad = true});
  const Tensor dy = tensor({1.0, 2.0, 3.0});
  CHECK(allclose(grad({softmax(leaf, 0)}, {leaf}, {.grad_outputs = {dy}})[0], {0, -0.25, 0.25}));
}

}  // namespace norma::test
