// Copies between any strides and dtypes, and the random numbers.
#include <omp.h>

#include <array>
#include <cmath>
#include <set>

#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/core/required_ops.h"
#include "norma/core/tensor_impl.h"
#include "norma/ops/view.h"
#include "support/catch.h"
#include "support/compare.h"

namespace norma::test {
namespace {

/// Element by element, by the definition of strides.
template <class T>
void check_copied(const Tensor& out, const Tensor& source) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(out.dim()), 0);
  for (std::int64_t n = 0; n < out.numel(); ++n) {
    std::int64_t rest = n;
    std::int64_t from = 0;
    std::int64_t to = 0;
    for (std::int64_t d = out.dim() - 1; d >= 0; --d) {
      from += rest % out.shape()[d] * source.strides()[d];
      to += rest % out.shape()[d] * out.strides()[d];
      rest /= out.shape()[d];
    }
    if (out.data<T>()[to] != static_cast<T>(source.data<double>()[from])) {
      FAIL("element " << n << " of shape " << out.shape().str());
    }
  }
  SUCCEED();
}

}  // namespace

TEST_CASE("copies keep every element, whatever the strides") {
  const Tensor x = random({6, 70, 5, 40}, 1, -100.0, 100.0);
  for (const Shape& order : {Shape{0, 1, 2, 3}, Shape{0, 1, 3, 2}, Shape{3, 2, 1, 0},
                             Shape{0, 2, 1, 3}, Shape{2, 3, 0, 1}, Shape{1, 0, 3, 2}}) {
    const Tensor source = x.permute(order);
    check_copied<double>(source.contiguous(), source);
    check_copied<float>(source.to(float32), source);
    check_copied<std::int64_t>(source.to(int64), source);
    // Into a strided place, too.
    const Tensor room = zeros({81, 43, 7, 71}, {.dtype = float64});
    Tensor place = room.narrow(1, 2, 40).narrow(0, 1, 70).narrow(2, 1, 5).narrow(3, 4, 6);
    place = place.permute({3, 0, 2, 1});
    Shape inverse = order;
    for (std::int64_t d = 0; d < 4; ++d) inverse[order[d]] = d;
    detail::copy(place, source.permute(inverse));
    check_copied<double>(place, x);
  }
  const Tensor row = random({1, 40}, 2);
  check_copied<double>(row.expand({30, 40}).contiguous(), row.expand({30, 40}));
  check_copied<double>(row.t().expand({40, 30}).contiguous(), row.t().expand({40, 30}));
  check_copied<double>(random({}, 3).clone(), random({}, 3));
}

TEST_CASE("conversion rounds as C++ and PyTorch do") {
  const Tensor x = tensor({-1.75, 0.0, 0.5, 2.99, 70000.0}, {.dtype = float64});
  CHECK(x.to(int64).to_vector<std::int64_t>() == std::vector<std::int64_t>{-1, 0, 0, 2, 70000});
  CHECK(x.to(bool_).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0, 1, 1, 1});
  CHECK(std::isinf(x.to(float16)[4].item()));
  CHECK(tensor({true, false}).to(bfloat16).to_vector<double>() == std::vector<double>{1.0, 0.0});
  CHECK(full({1}, std::nan(""), {.dtype = float32}).to(bool_).item() == 1.0);
}

TEST_CASE("element i of a random operation depends on seed, offset and i alone") {
  for (const DType dtype : {float32, float64, bfloat16}) {
    const auto draw = [&](std::int64_t count, int threads) {
      const int before = omp_get_max_threads();
      omp_set_num_threads(threads);
      manual_seed(7);
      TensorList drawn{empty({count}, {.dtype = dtype}), empty({count}, {.dtype = dtype}),
                       empty({count}, {.dtype = int64})};
      detail::fill_normal(drawn[0], 1.0, 2.0);
      manual_seed(7);
      detail::fill_uniform(drawn[1], -2.0, 3.0);
      manual_seed(7);
      detail::fill_randint(drawn[2], -5, 9);
      omp_set_num_threads(before);
      return drawn;
    };
    const TensorList one = draw(100003, 1);
    const TensorList four = draw(100003, 4);
    const TensorList few = draw(1001, 4);
    for (std::size_t k = 0; k < one.size(); ++k) {
      CHECK(bitwise_equal(one[k], four[k]));
      CHECK(bitwise_equal(few[k], one[k].narrow(0, 0, 1001).contiguous()));
    }
  }
}

TEST_CASE("successive draws differ, and a saved state repeats them") {
  manual_seed(3);
  const Tensor first = randn({1001});
  const PhiloxState state = default_generator().get_state();
  const Tensor second = randn({1001});
  CHECK_FALSE(bitwise_equal(first, second));
  default_generator().set_state(state);
  CHECK(bitwise_equal(second, randn({1001})));
}

TEST_CASE("the distributions have their moments and bounds") {
  manual_seed(11);
  constexpr std::int64_t count = 400000;
  const auto moments = [](const Tensor& x) {
    double sum = 0.0;
    double squares = 0.0;
    double fourth = 0.0;
    for (const double v : x.to_vector<double>()) {
      sum += v;
      squares += v * v;
      fourth += v * v * v * v;
    }
    return std::array<double, 3>{sum / count, squares / count, fourth / count};
  };
  for (const DType dtype : {float32, float64}) {
    const auto normal = moments(randn({count}, {.dtype = dtype}));
    CHECK(normal[0] == Approx(0.0).margin(0.008));  // 5 standard errors
    CHECK(normal[1] == Approx(1.0).margin(0.012));
    CHECK(normal[2] == Approx(3.0).margin(0.08));
    const auto uniform = moments(rand({count}, {.dtype = dtype}));
    CHECK(uniform[0] == Approx(1.0 / 2).margin(0.0025));
    CHECK(uniform[1] == Approx(1.0 / 3).margin(0.0025));
  }
  // In 16 bits many values round up to the bound, which stays excluded.
  for (const DType dtype : {float16, bfloat16}) {
    bool inside = true;
    for (const double v : rand({count}, {.dtype = dtype}).to_vector<double>())
      inside = inside && v >= 0.0 && v < 1.0;
    CHECK(inside);
  }
  std::set<std::int64_t> seen;
  for (const std::int64_t v : randint(-2, 3, {1000}).to_vector<std::int64_t>()) seen.insert(v);
  CHECK(seen == std::set<std::int64_t>{-2, -1, 0, 1, 2});
}

TEST_CASE("all_finite finds one bad value anywhere") {
  for (const DType dtype : {float16, bfloat16, float32, float64}) {
    const Tensor x = ones({70001}, {.dtype = dtype});
    CHECK(detail::all_finite(x));
    for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      for (const std::int64_t at : {0, 33333, 70000}) {
        x[at].fill_(bad);
        CHECK_FALSE(detail::all_finite(x));
        x[at].fill_(1.0);
      }
    }
  }
  CHECK(detail::all_finite(zeros({0})));
  CHECK(detail::all_finite(arange(3)));
}

}  // namespace norma::test
