#include "support/catch.h"

#include "norma/core/allocator.h"
#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/loss.h"
#include "norma/ops/softmax.h"
#include "support/compare.h"

#include <cmath>
#include <limits>

namespace norma::test {

TEST_CASE("cross_entropy of known values") {
  const Tensor x = tensor({{0.0, std::log(3.0)}, {0.0, 0.0}});
  const Tensor target = tensor({1, 0});
  const double a = -std::log(0.75), b = -std::log(0.5);
  CHECK(allclose(cross_entropy(x, target, {.reduction = Reduction::none}), {a, b}));
  CHECK(allclose(cross_entropy(x, target), std::vector<double>{(a + b) / 2}));
  // The weighted mean divides by the weights of the targets, not by the rows.
  CHECK(allclose(cross_entropy(x, target, {.weight = tensor({2.0, 1.0})}),
                 std::vector<double>{(a + 2 * b) / 3}));
}

TEST_CASE("ignored rows count nowhere, whatever they hold") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = tensor({{0.0, 1.0}, {nan, nan}, {2.0, 0.0}}, {.requires_grad = true});
  const Tensor kept = tensor({{0.0, 1.0}, {2.0, 0.0}}, {.requires_grad = true});
  const CrossEntropyOptions options{.label_smoothing = 0.1};
  const Tensor loss = cross_entropy(x, tensor({1, -100, 1}), options);
  const Tensor expected = cross_entropy(kept, tensor({1, 1}), options);
  CHECK(allclose(loss, expected));
  const std::vector<double> g = grad({expected}, {kept})[0].to_vector<double>();
  CHECK(allclose(grad({loss}, {x})[0], {g[0], g[1], 0, 0, g[2], g[3]}));
}

TEST_CASE("the mean over no rows is NaN as in PyTorch, the sum is 0") {
  const Tensor x = ones({2, 3});
  const Tensor ignored = tensor({-100, -100});
  CHECK(std::isnan(cross_entropy(x, ignored).item()));
  CHECK(cross_entropy(x, ignored, {.reduction = Reduction::sum}).item() == 0.0);
}

TEST_CASE("cross_entropy is exact for large logits") {
  const Tensor x = tensor({{10000.0, 9999.0}, {-10000.0, 10000.0}}, {.requires_grad = true});
  const Tensor loss = cross_entropy(x, tensor({0, 0}), {.reduction = Reduction::none});
  CHECK(allclose(loss, {std::log1p(std::exp(-1.0)), 20000.0}, {1e-6, 0}));
  CHECK(allclose(grad({loss.sum()}, {x})[0],
                 {-1 / (1 + std::exp(1.0)), 1 / (1 + std::exp(1.0)), -1.0, 1.0}, {1e-3, 1e-6}));
}

TEST_CASE("cross_entropy keeps no probabilities") {
  const Tensor x = random({64, 512}, 1).to(float32).requires_grad_();
  const std::int64_t before = memory_stats().current;
  const Tensor loss = cross_entropy(x, zeros({64}, {.dtype = int64}));
  CHECK(memory_stats().current - before < static_cast<std::int64_t>(x.nbytes()) / 8);
}

TEST_CASE("nll_loss of log-probabilities is cross_entropy") {
  const Tensor x = random({4, 2, 3}, 1);
  const Tensor target = tensor({{0, 1, -100}, {1, 1, 0}, {0, 0, 0}, {1, -100, 1}});
  const Tensor weight = tensor({0.3, 2.0}, {.dtype = float64});
  for (const Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum})
    CHECK(allclose(nll_loss(log_softmax(x, 1), target, {.weight = weight, .reduction = reduction}),
                   cross_entropy(x, target, {.weight = weight, .reduction = reduction}),
                   {1e-12, 1e-12}));
}

TEST_CASE("binary cross-entropy of known values, without overflow") {
  const Tensor x = tensor({0.0, 1000.0, -1000.0, 1000.0});
  const Tensor y = tensor({1.0, 1.0, 0.0, 0.0});
  CHECK(allclose(binary_cross_entropy_with_logits(x, y, {.reduction = Reduction::none}),
                 {std::log(2.0), 0, 0, 1000}));
  CHECK(allclose(binary_cross_entropy_with_logits(
                     x, y, {.pos_weight = tensor({3.0}), .reduction = Reduction::none}),
                 {3 * std::log(2.0), 0, 0, 1000}));
  CHECK(allclose(binary_cross_entropy_with_logits(
                     x, y, {.weight = tensor({1.0, 1.0, 1.0, 0.5}), .reduction = Reduction::sum}),
                 std::vector<double>{std::log(2.0) + 500}));
}

TEST_CASE("mse_loss") {
  const Tensor x = tensor({1.0, 4.0}, {.requires_grad = true});
  const Tensor y = tensor({0.0, 2.0});
  CHECK(allclose(mse_loss(x, y), std::vector<double>{2.5}));
  CHECK(allclose(mse_loss(x, y, {.reduction = Reduction::none}), {1, 4}));
  CHECK(allclose(grad({mse_loss(x, y)}, {x})[0], {1, 2}));
}

TEST_CASE("losses of 16-bit values are computed in float32") {
  // 300^2 does not fit a float16, the mean does.
  const Tensor x = tensor({300.0, 0.0, 0.0, 0.0}, {.dtype = float16, .requires_grad = true});
  const Tensor loss = mse_loss(x, zeros({4}, {.dtype = float16}));
  CHECK(loss.dtype() == float16);
  CHECK(loss.item() == Approx(22496.0));  // 22500 as a float16
  CHECK(allclose(grad({loss}, {x})[0], {150, 0, 0, 0}));
  // 4096 terms of log 2: a float16 sum of rounded terms would stop at 2048 * its step.
  const Tensor logits = zeros({4096}, {.dtype = bfloat16});
  CHECK(binary_cross_entropy_with_logits(logits, logits).item() ==
        Approx(std::log(2.0)).epsilon(4e-3));
}

}  // namespace norma::test
