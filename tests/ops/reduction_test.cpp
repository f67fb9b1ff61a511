// Values and gradients of reductions that the generic suites cannot see.
#include "norma/ops/reduction.h"

#include <cmath>

#include "norma/core/factory.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/view.h"
#include "support/catch.h"
#include "support/compare.h"

namespace norma::test {
namespace {

const TensorOptions trainable{.dtype = float64, .requires_grad = true};

}  // namespace

TEST_CASE("known values") {
  const Tensor x = tensor({{1., 2., 4.}, {3., 0., -1.}}, {.dtype = float64});
  CHECK(allclose(sum(x), {9}));
  CHECK(allclose(sum(x, {0}), {4, 2, 3}));
  CHECK(allclose(mean(x, {-1}), {7.0 / 3, 2.0 / 3}));
  CHECK(allclose(var(x, {1}), {7.0 / 3, 13.0 / 3}));
  CHECK(allclose(var(x, {1}, 0), {14.0 / 9, 26.0 / 9}));
  CHECK(allclose(std(x, {1}), {std::sqrt(7.0 / 3), std::sqrt(13.0 / 3)}));
  CHECK(allclose(prod(x, {1}), {8, 0}));
  CHECK(allclose(amax(x, {0}), {3, 2, 4}));
  CHECK(allclose(amin(x), {-1}));
  CHECK(allclose(cumsum(x, 1), tensor({{1., 3., 7.}, {3., 3., 2.}})));
  CHECK(allclose(vector_norm(x), {std::sqrt(31.0)}));
  CHECK(allclose(logsumexp(x, {1}), {std::log(std::exp(1) + std::exp(2) + std::exp(4)),
                                     std::log(std::exp(3) + 1 + std::exp(-1))}));
}

TEST_CASE("bool and integers are summed in int64") {
  const Tensor many = ones({300}, {.dtype = bool_});
  CHECK(sum(many).dtype() == int64);
  CHECK(sum(many).item() == 300);
  CHECK(sum(full({2}, 2e9, {.dtype = int32})).item() == 4e9);
  CHECK(prod(tensor({3, 4})).dtype() == int64);
  CHECK(cumsum(tensor({true, true}), 0).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{1, 2});
  CHECK(amax(tensor({3, -4})).dtype() == int64);
}

TEST_CASE("nothing to reduce") {
  const Tensor none = zeros({2, 0}, {.dtype = float64});
  CHECK(allclose(sum(none, {1}), {0, 0}));
  CHECK(allclose(prod(none, {1}), {1, 1}));
  CHECK(std::isnan(mean(none).item()));
  CHECK(any(none).item() == 0.0);
  CHECK(all(none).item() == 1.0);
  CHECK(logsumexp(none, {1})[0].item() == -HUGE_VAL);
  CHECK(sum(none, {0}).shape() == Shape{0});
  CHECK(amax(none, {0}).shape() == Shape{0});
  const Tensor x = zeros({2, 0}, trainable);
  sum(x).backward();
  CHECK(x.grad().shape() == Shape{2, 0});
}

TEST_CASE("extrema: ties, NaN and infinities") {
  const Tensor x = tensor({{2., 5., 5.}, {7., 7., 7.}}, trainable);
  amax(x, {1}).backward(tensor({1., 3.}, {.dtype = float64}));
  CHECK(allclose(x.grad(), tensor({{0., .5, .5}, {1., 1., 1.}})));
  x.set_grad({});
  const ValuesAndIndices top = max(x, 1);
  CHECK(top.indices.to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0});
  CHECK_FALSE(top.indices.requires_grad());
  top.values.sum().backward();
  CHECK(allclose(x.grad(), tensor({{0., 1., 0.}, {1., 0., 0.}})));

  const double nan = std::nan("");
  for (const std::int64_t width : {3, 100}) {  // the scalar and the vector path
    Tensor row = zeros({width}, {.dtype = float32});
    row[1].fill_(nan);
    CHECK(std::isnan(amax(row).item()));
    CHECK(std::isnan(amin(row).item()));
    CHECK(argmax(row).item() == 1);
    CHECK(argmin(row).item() == 1);
  }
  CHECK(amax(full({3}, -HUGE_VAL)).item() == -HUGE_VAL);
  CHECK(argmax(tensor({1., 3., 3.})).item() == 1);
  CHECK(argmin(tensor({{4, 1}, {1, 1}})).item() == 1);
}

TEST_CASE("the gradient of an extremum with more ties than a 16-bit number counts") {
  const Tensor x = ones({70000}, {.dtype = float16, .requires_grad = true});
  amax(x).backward();
  CHECK(x.grad()[69999].to(float64).item() == Approx(1.0 / 70000).epsilon(0.02));  // subnormal
}

TEST_CASE("any and all see NaN as true") {
  const Tensor x = tensor({{0., std::nan("")}, {0., 0.}});
  CHECK(any(x, {1}).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0});
  CHECK(all(x, {0}).to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 0});
  CHECK(all(tensor({0.5, std::nan("")})).item() == 1.0);
  CHECK(any(ones({1000}, {.dtype = bool_})).dtype() == bool_);
}

TEST_CASE("sums are accurate, repeat, and do not overflow 16 bits") {
  const Tensor x = random({1 << 20}, 3, 0.0, 1.0);
  const double exact = sum(x).item();
  CHECK(sum(x.to(float32)).item() == Approx(exact).epsilon(1e-6));
  // 300 x 1000 = 300,000 is beyond float16, its mean is not.
  CHECK(mean(full({300}, 1000.0, {.dtype = float16})).item() == 1000.0);
  CHECK(vector_norm(full({4}, 30000.0, {.dtype = float16})).item() ==
        Approx(60000.0).epsilon(1e-3));
  CHECK(logsumexp(full({4}, 1000.0), {0}).item() == Approx(1000.0 + std::log(4.0)));
  // Two passes: a large mean must not swallow the variance.
  const Tensor shifted = random({4096}, 4) + 1e4;
  CHECK(var(shifted.to(float32)).item() == Approx(var(shifted).item()).epsilon(2e-3));
}

TEST_CASE("degenerate slices have gradients without NaN") {
  const Tensor zero = zeros({3}, trainable);
  vector_norm(zero).backward();
  CHECK(allclose(zero.grad(), {0, 0, 0}));
  const Tensor equal = full({3}, 2.0, trainable);
  std(equal).backward();
  CHECK(allclose(equal.grad(), {0, 0, 0}));
  const Tensor factors = tensor({2., 0., 3., 0.}, trainable);
  prod(factors).backward();
  CHECK(allclose(factors.grad(), {0, 0, 0, 0}));
  const Tensor one_zero = tensor({2., 0., 3.}, trainable);
  prod(one_zero).backward();
  CHECK(allclose(one_zero.grad(), {0, 6, 0}));
  CHECK(std::isnan(var(ones({1})).item()));
}

TEST_CASE("one dimension at a time or all at once") {
  const Tensor x = random({3, 4, 5, 6}, 8);
  CHECK(allclose(sum(x, {0, 2}), sum(sum(x, {2}), {0})));
  CHECK(allclose(sum(x, {1, 3}, true), sum(sum(x, {3}, true), {1}, true)));
  CHECK(allclose(mean(x.transpose(0, 3), {0}), mean(x, {3}).permute({1, 2, 0})));
  CHECK(sum(x, {1}, true).shape() == Shape{3, 1, 5, 6});
}

}  // namespace norma::test
