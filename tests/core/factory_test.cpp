// Factories: values, dtypes, and sizes that cannot be.
#include "norma/core/factory.h"
#include "support/catch.h"
#include "support/compare.h"

namespace norma::test {

TEST_CASE("ranges and the identity have PyTorch's values and dtypes") {
  CHECK(arange(3).dtype() == int64);
  CHECK(arange(0.0, 1.0, 0.25).dtype() == float32);
  CHECK(allclose(arange(0.0, 1.0, 0.25), {0, 0.25, 0.5, 0.75}));
  CHECK(allclose(arange(5.0, 0.0, -2.0), {5, 3, 1}));
  CHECK(arange(0).shape() == Shape{0});
  CHECK(allclose(linspace(0.0, 1.0, 5), {0, 0.25, 0.5, 0.75, 1}));
  CHECK(allclose(linspace(2.0, 3.0, 1), {2}));
  CHECK(allclose(eye(2), tensor({{1.0, 0.0}, {0.0, 1.0}})));
  CHECK(eye(0).shape() == Shape{0, 0});
  CHECK(eye(2, {.dtype = int32}).dtype() == int32);
}

TEST_CASE("sizes that cannot be are errors of norma") {
  CHECK_THROWS_AS(eye(std::int64_t{1} << 33), ShapeError);
  CHECK_THROWS_AS(eye(-1), ShapeError);
  CHECK_THROWS_AS(arange(1e300), ShapeError);
  CHECK_THROWS_AS(arange(0.0, 1.0, 0.0), Error);
  CHECK_THROWS_AS(zeros({std::int64_t{1} << 40, std::int64_t{1} << 40}), ShapeError);
  // The product is 0, but strides would overflow.
  CHECK_THROWS_AS(zeros({0, std::int64_t{1} << 40, std::int64_t{1} << 40}), ShapeError);
  CHECK(zeros({0, std::int64_t{1} << 62}).numel() == 0);
  CHECK_THROWS_AS(linspace(0.0, 1.0, std::int64_t{1} << 60), Error);
  CHECK_THROWS_AS(randperm(std::int64_t{1} << 60), Error);
}

TEST_CASE("integers stay exact where double would round them") {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  CHECK(tensor(big).item<std::int64_t>() == big);
  CHECK(tensor({big, big + 1}).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{big, big + 1});
  CHECK(tensor({{1, 2}, {3, 4}}).dtype() == int64);
  CHECK(tensor({true, false}).dtype() == bool_);
  CHECK(tensor({1, 2}, {.dtype = float64}).dtype() == float64);
}

}  // namespace norma::test
