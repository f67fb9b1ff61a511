// Methods of Tensor with a number: their values, gradients and errors. The operations themselves
// are tested in tests/ops.
#include "norma/core/factory.h"
#include "norma/core/tensor.h"
#include "support/catch.h"
#include "support/compare.h"

namespace norma::test {

using Catch::Contains;

TEST_CASE("numbers are added, subtracted, multiplied and divided in place", "[tensor]") {
  const Tensor x = tensor({1.0, 2.0, -3.0}, {.dtype = float64});
  const std::uint64_t version = x.version();
  CHECK(x.add_(2).is_same(x));
  CHECK(allclose(x, {3, 4, -1}));
  CHECK(allclose(x.sub_(0.5), {2.5, 3.5, -1.5}));
  CHECK(allclose(x.mul_(4), {10, 14, -6}));
  CHECK(allclose(x.div_(2), {5, 7, -3}));
  CHECK(x.version() == version + 4);
  CHECK(allclose(x.sub_(tensor({1.0, 2.0, 3.0}), 2.0), {3, 3, -9}));
  CHECK(allclose(x.sub_(tensor(1.0)), {2, 2, -10}));
  CHECK(allclose(tensor({5.0F}).div_(3.0), {5.0F / 3.0F}, {0.0, 0.0}));

  const Tensor n = arange(3);
  n.add_(5).sub_(1).mul_(2);
  CHECK(n.dtype() == int64);
  CHECK(allclose(n, {8, 10, 12}));
  const Tensor strided = zeros({2, 3});
  strided.t()[1].add_(1.5);
  CHECK(allclose(strided, tensor({{0.0, 1.5, 0.0}, {0.0, 1.5, 0.0}})));
}

TEST_CASE("gradients pass through numbers in place", "[tensor]") {
  const Tensor x = tensor({1.0, 2.0}, {.dtype = float64, .requires_grad = true});
  const Tensor w = tensor({3.0, 4.0}, {.dtype = float64, .requires_grad = true});
  const Tensor y = x.square();
  y.add_(1.0).mul_(3.0).sub_(2.0).div_(4.0).sub_(w, 0.5);
  CHECK(allclose(y, {-0.5, 1.25}));
  y.backward(tensor({1.0, 10.0}, {.dtype = float64}));
  CHECK(allclose(x.grad(), {1.5, 30}));
  CHECK(allclose(w.grad(), {-0.5, -5}));
}

TEST_CASE("in-place numbers refuse what the tensor cannot hold", "[tensor]") {
  const Tensor n = arange(3), flags = zeros({2}, {.dtype = bool_});
  CHECK_THROWS_WITH(n.add_(0.5), Contains("[add_] a tensor of int64 takes whole numbers only"));
  CHECK_THROWS_WITH(n.sub_(0.5), Contains("[sub_] a tensor of int64 takes whole numbers only"));
  CHECK_THROWS_WITH(n.div_(2), Contains("[div_] a int64 tensor cannot hold quotients"));
  CHECK_THROWS_WITH(n.sub_(n, 0.5), Contains("[sub_] a tensor of int64 takes whole numbers only"));
  CHECK_THROWS_WITH(flags.add_(1), Contains("[add_] a bool tensor cannot hold a sum"));
  CHECK_THROWS_WITH(flags.sub_(flags), Contains("[sub_] a bool tensor cannot hold a sum"));
  CHECK_THROWS_WITH(ones({1}).expand({3}).add_(1.0), Contains("[add_] each element"));
  CHECK_THROWS_WITH(ones({1}, {.requires_grad = true}).sub_(1.0), Contains("[sub_]"));
  CHECK_THROWS_WITH(ones({1}, {.requires_grad = true}).div_(2.0), Contains("[div_]"));
  CHECK(allclose(n, {0, 1, 2}));
}

TEST_CASE("any and all are methods, too", "[tensor]") {
  const Tensor x = tensor({{1.0, 0.0}, {2.0, 3.0}});
  CHECK(x.any().dtype() == bool_);
  CHECK(x.any().item<bool>());
  CHECK_FALSE(x.all().item<bool>());
  CHECK(x.all({1}).to_vector<bool>() == std::vector<bool>{false, true});
  CHECK(x.any({0}, true).shape() == Shape{1, 2});
  CHECK(x.all({0}, true).shape() == Shape{1, 2});
}

}  // namespace norma::test
