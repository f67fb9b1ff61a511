// add_, mul_, copy_, fill_: what changes, what the tape does with it, and what it refuses.
#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/gradcheck.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/view.h"
#include "support/catch.h"
#include "support/compare.h"

#include <functional>
#include <sstream>

namespace norma::test {

using Catch::Contains;

TEST_CASE("in-place operations change the values, return the tensor and bump the version") {
  const Tensor x = tensor({1.0, 2.0, 3.0}, {.dtype = float64});
  const std::uint64_t version = x.version();
  CHECK(x.add_(tensor({1.0, 1.0, 1.0}), 2.0).is_same(x));
  CHECK(allclose(x, {3, 4, 5}));
  x.mul_(x.clone()).mul_(0.5);
  CHECK(allclose(x, {4.5, 8, 12.5}));
  x.copy_(tensor(7));
  CHECK(allclose(x, {7, 7, 7}));
  x.zero_();
  CHECK(allclose(x, {0, 0, 0}));
  CHECK(x.version() == version + 5);
}

TEST_CASE("in-place operations reach through views and keep the dtype") {
  const Tensor x = zeros({2, 3}, {.dtype = float16});
  x.t().select(0, 1).add_(tensor({1.5, 2.5}));
  x.narrow(1, 2, 1).fill_(9.0);
  x[0].mul_(tensor({1, 2, 1}));
  CHECK(allclose(x, tensor({{0., 3., 9.}, {0., 2.5, 9.}})));
  CHECK(x.dtype() == float16);
  const Tensor n = arange(3);
  n.add_(tensor({1, 1, 1})).mul_(tensor({2, 2, 2}));
  CHECK(n.to_vector<std::int64_t>() == std::vector<std::int64_t>{2, 4, 6});
}

TEST_CASE("gradients through in-place operations") {
  const Tensor x = random({3}, 1).requires_grad_();
  const Tensor w = random({3}, 2).requires_grad_();
  const Tensor b = random({1}, 3).requires_grad_();
  Tensor y = x * 2.0;
  y.mul_(w).add_(b, 3.0).mul_(0.5);
  y.sum().backward();
  CHECK(allclose(x.grad(), w.detach()));
  CHECK(allclose(w.grad(), x.detach()));
  CHECK(allclose(b.grad(), {4.5}));

  const Tensor source = random({3}, 4).to(float32).requires_grad_();
  const Tensor z = x * 1.0;
  z.copy_(source);
  x.set_grad({});
  (z * w.detach()).sum().backward();
  CHECK(source.grad().dtype() == float32);
  CHECK(allclose(source.grad(), w.detach(), {1e-6, 1e-6}));
  const Tensor filled = x * 1.0;
  filled.fill_(2.0);
  (filled * w).sum().backward();
  CHECK(allclose(x.grad(), {0, 0, 0}));
  const Tensor copied = x * 1.0;
  copied.copy_(w.detach());
  CHECK(allclose(grad({copied.sum()}, {x})[0], {0, 0, 0}));  // overwritten, but on the way
}

TEST_CASE("a product in place has derivatives of any order") {
  const auto cube = [](const TensorList& in) {
    const Tensor y = in[0] * in[1];
    y.mul_(in[0]).mul_(in[0]);
    return y;
  };
  const auto check =
      gradgradcheck(cube, {random({3}, 1).requires_grad_(), random({3}, 2).requires_grad_()});
  INFO(check.message);
  CHECK(check);
}

TEST_CASE("an operand in the memory that changes keeps its value") {
  const Tensor x = tensor({3.0}, {.dtype = float64, .requires_grad = true});
  const Tensor squared = x * 1.0;
  squared.mul_(squared);
  squared.backward();
  CHECK(allclose(squared.detach(), {9}));
  CHECK(allclose(x.grad(), {6}));
  x.set_grad({});
  const Tensor scaled = x * 1.0;
  scaled.mul_(scaled.detach());
  scaled.backward();
  CHECK(allclose(x.grad(), {3}));
  x.set_grad({});
  const Tensor doubled = x * 1.0;
  doubled.add_(doubled);
  doubled.backward();
  CHECK(allclose(x.grad(), {2}));

  const Tensor row = tensor({0.0, 1.0, 2.0, 3.0});
  row.narrow(0, 1, 3).add_(row.narrow(0, 0, 3));
  CHECK(allclose(row, {0, 1, 3, 5}));
  row.narrow(0, 1, 3).copy_(row.narrow(0, 0, 3));
  CHECK(allclose(row, {0, 0, 1, 3}));
}

TEST_CASE("integers stay exact in place") {
  const Tensor n = from_values(std::vector<std::int64_t>{16777217}, {1});  // no float32 holds it
  n.mul_(1.0).add_(tensor({16777217}), 2.0).mul_(-1.0);
  CHECK(n.to_vector<std::int64_t>() == std::vector<std::int64_t>{-50331651});
  CHECK_THROWS_AS(n.mul_(1.5), DTypeError);
  CHECK_THROWS_AS(n.add_(n, 0.5), DTypeError);
  CHECK(n.to_vector<std::int64_t>() == std::vector<std::int64_t>{-50331651});
}

TEST_CASE("what must not change in place says so, and stays as it is") {
  const Tensor leaf = ones({2}, {.dtype = float64, .requires_grad = true});
  CHECK_THROWS_WITH(leaf.add_(leaf.detach()), Contains("[add_]") && Contains("NoGradGuard"));
  CHECK_THROWS_WITH(leaf.fill_(0.0), Contains("[fill_]") && Contains("NoGradGuard"));
  CHECK(allclose(leaf.detach(), {1, 1}));
  {
    const NoGradGuard no_grad;
    leaf.mul_(3.0);
  }
  CHECK(allclose(leaf.detach(), {3, 3}));
  CHECK(leaf.is_leaf());

  const Tensor y = leaf * 1.0;
  const Tensor view = y.narrow(0, 0, 1);
  CHECK_THROWS_WITH(view.mul_(2.0), Contains("[mul_]") && Contains("view"));
  CHECK_THROWS_WITH(y.mul_(2.0), Contains("[mul_]") && Contains("views"));
  CHECK(allclose(y.detach(), {3, 3}));
  // A view of plain data that would become part of a graph.
  const Tensor plain = zeros({2}, {.dtype = float64});
  CHECK_THROWS_WITH(plain[0].copy_(leaf[0]), Contains("[copy_]"));
  CHECK(allclose(plain, {0, 0}));
}

TEST_CASE("an expanded target, whose elements share memory, is refused") {
  const Tensor x = ones({2, 1});
  const Tensor wide = x.expand({2, 3});
  CHECK_THROWS_WITH(wide.add_(ones({2, 3})), Contains("[add_]") && Contains("dimension 1"));
  CHECK_THROWS_WITH(wide.mul_(wide), Contains("[mul_]") && Contains("expanded"));
  CHECK_THROWS_WITH(wide.mul_(2.0), Contains("[mul_]") && Contains("clone()"));
  CHECK_THROWS_WITH(wide.copy_(ones({2, 3})), Contains("[copy_]") && Contains("got shape [2, 3]"));
  CHECK(allclose(x, {1, 1}));
  // One value for all can share, as in PyTorch; so can a size of 1, and nothing at all.
  wide.fill_(4.0);
  x.expand({1, 2, 1}).mul_(2.0);
  zeros({0, 1}).expand({0, 3}).add_(ones({3}));
  CHECK(allclose(x, {8, 8}));
}

TEST_CASE("operands that do not fit are refused") {
  const Tensor x = zeros({2});
  CHECK_THROWS_AS(x.add_(zeros({3})), ShapeError);
  CHECK_THROWS_AS(x.mul_(zeros({2, 2})), ShapeError);
  CHECK_THROWS_AS(x.copy_(zeros({3})), ShapeError);
  CHECK_THROWS_AS(arange(2).add_(zeros({2})), DTypeError);
  const Tensor flags = tensor({true, false});
  CHECK_THROWS_AS(flags.add_(tensor({0, 5})), DTypeError);
  CHECK_THROWS_AS(flags.mul_(tensor({2, 3})), DTypeError);
  CHECK_THROWS_AS(flags.mul_(2.0), DTypeError);
  CHECK(flags.mul_(tensor({true, true})).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK_THROWS_WITH(x.add_(Tensor()), Contains("[add_] the operand must be defined"));
  CHECK_THROWS_WITH(x.copy_(Tensor()), Contains("[copy_] the source must be defined"));
}

TEST_CASE("a tensor that is not there cannot change") {
  const Tensor leaf = ones({2}, {.requires_grad = true});
  CHECK_THROWS_WITH(leaf.grad().zero_(), Contains("must be defined") && Contains(".grad()"));
  CHECK_THROWS_AS(leaf.grad() = 0.0, ValueError);
  const NoGradGuard no_grad;
  const std::function<void(const Tensor&)> changes[] = {
      [](const Tensor& t) { t.fill_(1.0); },      [](const Tensor& t) { t.add_(1.0); },
      [](const Tensor& t) { t.sub_(ones({1})); }, [](const Tensor& t) { t.mul_(2.0); },
      [](const Tensor& t) { t.div_(2.0); },       [](const Tensor& t) { t.copy_(ones({1})); }};
  for (const auto& change : changes) CHECK_THROWS_AS(change(Tensor()), ValueError);
}

TEST_CASE("assignment to a view without a name writes, to a variable rebinds") {
  const Tensor x = zeros({2, 3});
  x[0] = ones({3});
  x.narrow(1, 2, 1) = 5.0;
  CHECK(allclose(x, {1, 1, 5, 0, 0, 5}));
  Tensor row = x[0];
  row = zeros({3});
  CHECK(allclose(x, {1, 1, 5, 0, 0, 5}));
  CHECK_THROWS_AS((x[0] = ones({2})), ShapeError);
}

TEST_CASE("compound assignment is in place and on the tape") {
  const Tensor w = full({2}, 3.0, {.dtype = float64, .requires_grad = true});
  Tensor total = zeros({2}, {.dtype = float64});
  const Tensor same = total;
  total += w * w;
  total -= w;
  total *= 2.0;
  total /= 4.0;
  CHECK(same.is_same(total));
  CHECK(allclose(total.detach(), {3, 3}));
  total.sum().backward();
  CHECK(allclose(w.grad(), {2.5, 2.5}));
  CHECK_THROWS_AS(w += 1.0, AutogradError);
}

TEST_CASE("one dimension or size needs no braces") {
  CHECK(zeros(3).shape() == Shape{3});
  CHECK(ones({2, 3}).sum(1).shape() == Shape{2});
  CHECK(ones({2, 3}).mean(-1, true).shape() == Shape{2, 1});
  std::ostringstream text;
  text << Shape{2, 3} << ' ' << float32 << ' ' << cpu;
  CHECK(text.str() == "[2, 3] float32 cpu");
}

}  // namespace norma::test
