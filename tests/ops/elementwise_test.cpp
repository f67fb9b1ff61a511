#include "support/catch.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/ops/elementwise.h"
#include "support/compare.h"

#include <cmath>
#include <limits>

namespace norma::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Gradient of sum(f(x)) at the values.
Tensor slope(const std::function<Tensor(const Tensor&)>& f, const std::vector<double>& values) {
  const Tensor x = from_values(values, {static_cast<std::int64_t>(values.size())},
                               {.dtype = float64, .requires_grad = true});
  return grad({f(x).sum()}, {x})[0];
}

}  // namespace

TEST_CASE("dtypes promote as in PyTorch") {
  const Tensor i = ones({2}, {.dtype = int64});
  const Tensor i32 = ones({2}, {.dtype = int32});
  const Tensor b = i > 0;
  const Tensor f = ones({2});
  const Tensor d = ones({2}, {.dtype = float64});
  const Tensor h = ones({2}, {.dtype = float16});
  const Tensor zero_dim_double = ones({}, {.dtype = float64});
  CHECK((i + f).dtype() == float32);
  CHECK((i + i32).dtype() == int64);
  CHECK((b + i32).dtype() == int32);
  CHECK((f + d).dtype() == float64);
  CHECK((h + ones({2}, {.dtype = bfloat16})).dtype() == float32);
  CHECK((f * zero_dim_double).dtype() == float32);
  CHECK((i * zero_dim_double).dtype() == float64);
  CHECK((h * 2.5).dtype() == float16);
  CHECK((f * 2.5).dtype() == float32);
  CHECK((i * 2).dtype() == int64);
  CHECK((i * 2.5).dtype() == float32);
  CHECK((i32 / i32).dtype() == float32);
  CHECK((i / 2).dtype() == float32);
  CHECK((b + 1).dtype() == int64);
  CHECK((f < d).dtype() == bool_);
  CHECK(exp(i).dtype() == float32);
  CHECK(abs(i32).dtype() == int32);
  CHECK(clamp(i, 0, 3).dtype() == int64);
  CHECK(clamp(i, 0.5).dtype() == float32);
  CHECK(masked_fill(h, b, -1e4).dtype() == float16);
}

TEST_CASE("integer arithmetic") {
  const Tensor a = tensor({7, -7, 2});
  const Tensor b = tensor({2, 2, -3});
  CHECK(allclose(a + b, {9, -5, -1}));
  CHECK(allclose(a * b, {14, -14, -6}));
  CHECK(allclose(a / b, {3.5, -3.5, -2.0 / 3.0}));
  CHECK(allclose(pow(a, tensor({2, 3, 0})), {49, -343, 1}));
  CHECK(allclose(pow(a, 2), {49, 49, 4}));
  CHECK(allclose(maximum(a, b), {7, 2, 2}));
  CHECK(allclose(-a, {-7, 7, -2}));
  CHECK(allclose(sign(a), {1, -1, 1}));
  CHECK(allclose(clamp(a, -1, 3), {3, -1, 2}));
  CHECK(allclose(a > 1.5, {1, 0, 1}));
  // int64 keeps what float64 could not.
  const Tensor big = from_values(std::vector<std::int64_t>{9007199254740993}, {1});
  CHECK((big + big - big).to_vector<std::int64_t>()[0] == 9007199254740993);
  CHECK_THROWS_AS(-(a > 0), DTypeError);
  CHECK_THROWS_AS((a > 0) - (a > 0), DTypeError);
}

TEST_CASE("operands broadcast and come in any layout") {
  const Tensor m = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  CHECK(allclose(m + tensor({10.0, 20.0, 30.0}), {11, 22, 33, 14, 25, 36}));
  CHECK(allclose(m.t() * tensor({1.0, 10.0}), {1, 40, 2, 50, 3, 60}));
  CHECK(allclose(m - m.select(1, 0).unsqueeze(1), {0, 1, 2, 0, 1, 2}));
  CHECK(allclose(tensor(2.0) / m, {2, 1, 2.0 / 3, 0.5, 0.4, 1.0 / 3}));
  // Eight dimensions, broadcast in turn.
  const Tensor a = random({2, 1, 2, 1, 2, 1, 2, 1}, 1);
  const Tensor b = random({1, 3, 1, 2, 1, 3, 1, 2}, 2);
  const Tensor sum = a + b;
  CHECK(sum.shape() == Shape{2, 3, 2, 2, 2, 3, 2, 2});
  CHECK(allclose(sum, a.expand(sum.shape()).contiguous() + b.expand(sum.shape()).contiguous()));
  CHECK_THROWS_WITH(zeros({2, 3}) + zeros({4}), Catch::Contains("[add]"));
}

TEST_CASE("special values") {
  const Tensor x = tensor({1.0, -1.0, 0.0, inf, -inf, nan});
  CHECK(allclose(isnan(x), {0, 0, 0, 0, 0, 1}));
  CHECK(allclose(isfinite(x), {1, 1, 1, 0, 0, 0}));
  CHECK(allclose(logical_not(x), {0, 0, 1, 0, 0, 0}));
  CHECK(allclose(abs(x), {1, 1, 0, inf, inf, nan}));
  CHECK(allclose(exp(x), {std::exp(1.0), std::exp(-1.0), 1, inf, 0, nan}));
  CHECK(allclose(log(x), {0, nan, -inf, inf, nan, nan}));
  CHECK(allclose(sigmoid(x), {1 / (1 + std::exp(-1.0)), 1 / (1 + std::exp(1.0)), 0.5, 1, 0, nan}));
  CHECK(allclose(tanh(x), {std::tanh(1.0), -std::tanh(1.0), 0, 1, -1, nan}));
  CHECK(allclose(clamp(x, -0.5, 0.5), {0.5, -0.5, 0, 0.5, -0.5, nan}));
  CHECK(allclose(clamp(x, 2.0, 1.0), {1, 1, 1, 1, 1, nan}));
  const Tensor y = tensor({nan, 0.0, nan, 1.0, 1.0, 1.0});
  CHECK(allclose(maximum(x, y), {nan, 0, nan, inf, 1, nan}));
  CHECK(allclose(minimum(x, y), {nan, -1, nan, 1, -inf, nan}));
  CHECK(allclose(x == x, {1, 1, 1, 1, 1, 0}));
}

TEST_CASE("gradients at the edges") {
  CHECK(allclose(slope([](const Tensor& x) { return abs(x); }, {-2, 0, 3}), {-1, 0, 1}));
  CHECK(allclose(slope([](const Tensor& x) { return pow(x, 2.0); }, {0, 1}), {0, 2}));
  CHECK(allclose(slope([](const Tensor& x) { return pow(x, 1.0); }, {0, 1}), {1, 1}));
  CHECK(allclose(slope([](const Tensor& x) { return pow(x, 0.0); }, {0, 1}), {0, 0}));
  CHECK(allclose(slope([](const Tensor& x) { return pow(x, 0.5); }, {0, 4}), {inf, 0.25}));
  CHECK(allclose(slope([](const Tensor& x) { return pow(0.0, x); }, {0, 2}), {0, 0}));
  CHECK(allclose(slope([](const Tensor& x) { return clamp(x, -1.0, 1.0); }, {-2, -1, 0, 1, 2}),
                 {0, 1, 1, 1, 0}));
  CHECK(allclose(slope([](const Tensor& x) { return maximum(x, full_like(x, 1.0)); }, {0, 1, 2}),
                 {0, 0.5, 1}));
  CHECK(allclose(slope([](const Tensor& x) { return minimum(full_like(x, 1.0), x); }, {0, 1, 2}),
                 {1, 0.5, 0}));
  CHECK(allclose(slope([](const Tensor& x) { return sign(x); }, {-2, 0, 3}), {0, 0, 0}));

  // Tensor exponents: 0^b has slope 0 in b, a^0 slope 0 in a, also where a formula would say 0 *
  // inf.
  const Tensor a = tensor({0.0, 0.0, 2.0}, {.dtype = float64, .requires_grad = true});
  const Tensor b = tensor({0.0, 2.0, 3.0}, {.dtype = float64, .requires_grad = true});
  const TensorList gradients = grad({pow(a, b).sum()}, {a, b});
  CHECK(allclose(gradients[0], {0, 0, 12}));
  CHECK(allclose(gradients[1], {0, 0, 8 * std::log(2.0)}));
}

TEST_CASE("a masked infinity leaves no NaN in either direction") {
  const Tensor x = tensor({1.0, inf, nan}, {.dtype = float64, .requires_grad = true});
  const Tensor mask = tensor({false, true, true});
  const Tensor filled = masked_fill(x, mask, 0.0);
  CHECK(allclose(filled, {1, 0, 0}));
  CHECK(allclose(grad({(filled * 2.0).sum()}, {x})[0], {2, 0, 0}));
  const Tensor chosen = where(mask, 0.0, x);
  CHECK(allclose(chosen, {1, 0, 0}));
  CHECK(allclose(grad({(chosen * chosen).sum()}, {x})[0], {2, 0, 0}));
  CHECK(allclose(masked_fill(ones({2}), tensor({true, false}), -inf), {-inf, 1}));
}

TEST_CASE("gradients of broadcast operands have the operands' shapes") {
  const Tensor column = random({3, 1}, 1).requires_grad_();
  const Tensor row = random({4}, 2).requires_grad_();
  const Tensor scalar = random({}, 3).requires_grad_();
  const TensorList gradients = grad({(column * row + scalar).sum()}, {column, row, scalar});
  CHECK(allclose(gradients[0], row.sum().expand({3, 1})));
  CHECK(allclose(gradients[1], column.sum().expand({4})));
  CHECK(allclose(gradients[2], std::vector<double>{12.0}));
}

TEST_CASE("operators take numbers on either side") {
  const Tensor x = tensor({1.0, 2.0, 4.0});
  CHECK(allclose(1.0 - x, {0, -1, -3}));
  CHECK(allclose(2 + x, {3, 4, 6}));
  CHECK(allclose(4.0 / x, {4, 2, 1}));
  CHECK(allclose(2.0 > x, {1, 0, 0}));
  CHECK(allclose(2 <= x, {0, 1, 1}));
  CHECK(allclose(2 == x, {0, 1, 0}));
  CHECK(allclose(x != 2, {1, 0, 1}));
  CHECK(allclose(pow(2.0, x), {2, 4, 16}));
  CHECK(allclose(where(x > 1.5, x, -1.0), {-1, 2, 4}));
}

}  // namespace norma::test
