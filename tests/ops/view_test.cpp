// What the generic suites cannot see of views: that they share storage, and when a copy is made.
#include "norma/ops/view.h"
#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "support/catch.h"
#include "support/compare.h"

namespace norma::test {

TEST_CASE("views share storage and version") {
  const Tensor x = arange(24, {.dtype = float64}).reshape({2, 3, 4});
  const TensorList views{alias(x),
                         x.view({6, 4}),
                         x.reshape({4, 6}),
                         x.flatten(1),
                         x.transpose(0, 2),
                         x.permute({1, 2, 0}),
                         x.expand({5, 2, 3, 4}),
                         x.unsqueeze(1),
                         x.unsqueeze(0).squeeze(0),
                         x.narrow(2, 1, 2),
                         x.select(1, 2),
                         x[1],
                         split(x, 2, 2)[1],
                         chunk(x, 2, 1)[0],
                         unbind(x, 1)[2]};
  for (const Tensor& view : views) {
    CHECK(view.storage() == x.storage());
    CHECK_FALSE(view.is_same(x));
  }
  const std::uint64_t version = x.version();
  x.narrow(2, 1, 2).fill_(-1.0);
  CHECK(x.version() == version + 1);
  CHECK(views[1].to_vector<double>()[1] == -1.0);
  CHECK(x.clone().storage() != x.storage());
  CHECK(x.contiguous().is_same(x));
}

TEST_CASE("values of views") {
  const Tensor x = arange(6, {.dtype = float64}).reshape({2, 3});
  CHECK(allclose(x.t(), tensor({{0., 3.}, {1., 4.}, {2., 5.}}, {.dtype = float64})));
  CHECK(allclose(x.t().reshape({6}), {0, 3, 1, 4, 2, 5}));
  CHECK(allclose(x.select(1, -1), {2, 5}));
  CHECK(allclose(x[1].narrow(0, -2, 2), {4, 5}));
  CHECK(allclose(x.unsqueeze(1).expand({2, 2, 3}).select(0, 1).flatten(), {3, 4, 5, 3, 4, 5}));
  CHECK(chunk(arange(7), 3)[2].to_vector<std::int64_t>() == std::vector<std::int64_t>{6});
  CHECK(chunk(zeros({0, 2}), 3).size() == 3);
  CHECK(split(zeros({0}), 2).size() == 1);
  CHECK(unbind(zeros({0, 2})).empty());
  CHECK(squeeze(zeros({1, 2, 1})).shape() == Shape{2});
  CHECK(flatten(zeros({2, 0, 3}), 1).shape() == Shape{2, 0});
}

TEST_CASE("reshape copies only where no strides fit") {
  const Tensor x = arange(24, {.dtype = float64}).reshape({4, 6});
  CHECK(x.t().reshape({2, 3, 4}).storage() == x.storage());  // cuts a strided dimension
  CHECK(x.narrow(1, 0, 4).reshape({2, 2, 4}).storage() == x.storage());
  CHECK(x.narrow(1, 0, 4).reshape({16}).storage() != x.storage());  // a gap in each row
  CHECK(x.t().reshape({24}).storage() != x.storage());
  CHECK(allclose(x.t().reshape({2, 3, 4}).reshape({24}), x.t().contiguous().reshape({24})));
  CHECK(x.unsqueeze(1).transpose(0, 1).reshape({24}).storage() == x.storage());
}

TEST_CASE("a split whose pieces are used in part gets zeros for the rest") {
  const Tensor x = random({2, 5}, 1).requires_grad_();
  const TensorList parts = split(x, {2, 3}, 1);
  parts[1].sum().backward();
  CHECK(allclose(x.grad(), {0, 0, 1, 1, 1, 0, 0, 1, 1, 1}));
}

}  // namespace norma::test
