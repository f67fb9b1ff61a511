#include "norma/optim/clip_grad.h"

#include "norma/core/factory.h"
#include "support/catch.h"

#include <omp.h>

#include <cmath>

namespace norma::optim {
namespace {

using Catch::Contains;

Tensor with_gradient(const std::vector<double>& gradient, DType dtype = float32) {
  const Shape shape = {static_cast<std::int64_t>(gradient.size())};
  const Tensor p = zeros(shape, {.dtype = dtype, .requires_grad = true});
  p.set_grad(from_values(gradient, shape, {.dtype = dtype}));
  return p;
}

TEST_CASE("gradients above max_norm are scaled to it together, and the norm before is returned",
          "[clip_grad]") {
  const DType dtype = GENERATE(float32, float64, float16, bfloat16);
  const Tensor a = with_gradient({3.0, 0.0}, dtype);
  const Tensor b = with_gradient({0.0, 4.0, 0.0}, dtype);
  const Tensor none = zeros({7}, {.dtype = dtype, .requires_grad = true});
  const Tensor norm = clip_grad_norm_({a, none, b}, 1.0);
  CHECK(norm.item() == 5.0);
  CHECK(norm.dtype() == (dtype == float64 ? float64 : float32));
  const double epsilon = dtype == bfloat16 ? 4e-3 : dtype == float16 ? 5e-4 : 1e-6;
  CHECK(a.grad().to_vector<double>()[0] == Approx(0.6).epsilon(epsilon));
  CHECK(b.grad().to_vector<double>()[1] == Approx(0.8).epsilon(epsilon));
  CHECK_FALSE(none.grad().defined());
}

TEST_CASE("gradients below max_norm stay bit for bit", "[clip_grad]") {
  const Tensor a = with_gradient({0.1, 0.2, 0.3});
  const std::vector<float> before = a.grad().to_vector<float>();
  clip_grad_norm_({a}, 10.0);
  CHECK(a.grad().to_vector<float>() == before);
}

TEST_CASE("the scale is max_norm / (norm + 1e-6), as in PyTorch", "[clip_grad]") {
  const Tensor a = with_gradient({3e-6, 4e-6}, float64);
  clip_grad_norm_({a}, 1e-6);
  CHECK(a.grad().to_vector<double>()[0] == Approx(3e-6 / 6).epsilon(1e-12));
}

TEST_CASE("the norm neither overflows nor depends on the number of threads", "[clip_grad]") {
  CHECK(get_total_norm({tensor({3e30, 4e30})}).item() == Approx(5e30));
  CHECK(get_total_norm({tensor({3e-30, 4e-30})}).item() == Approx(5e-30));
  std::vector<double> values(200001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i));
  const Tensor a = with_gradient(values);
  const Tensor b = with_gradient({1, 2, 3});
  double squares = 14;
  for (const float value : a.grad().to_vector<float>())
    squares += static_cast<double>(value) * value;
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const double serial = get_total_norm({a.grad(), b.grad(), Tensor()}).item();
  omp_set_num_threads(3);
  const double parallel = get_total_norm({a.grad(), b.grad()}).item();
  omp_set_num_threads(threads);
  CHECK(serial == parallel);
  CHECK(serial == Approx(std::sqrt(squares)).epsilon(1e-6));
}

TEST_CASE("NaN and Inf spread, or are an error where asked for", "[clip_grad]") {
  const Tensor a = with_gradient({std::nan(""), 1.0});
  const Tensor b = with_gradient({1.0});
  CHECK_THROWS_WITH(clip_grad_norm_({a, b}, 1.0, {.error_if_nonfinite = true}),
                    Contains("must be finite; got nan"));
  CHECK(b.grad().to_vector<float>()[0] == 1.0F);  // untouched by the error
  CHECK(std::isnan(clip_grad_norm_({a, b}, 1.0).item()));
  CHECK(std::isnan(b.grad().to_vector<float>()[0]));
  const Tensor c = with_gradient({std::numeric_limits<double>::infinity()});
  const Tensor d = with_gradient({1.0});
  CHECK(std::isinf(clip_grad_norm_({c, d}, 1.0).item()));
  CHECK(d.grad().to_vector<float>()[0] == 0.0F);
}

TEST_CASE("gradients of any strides are clipped", "[clip_grad]") {
  const Tensor a = zeros({3}, {.requires_grad = true});
  a.set_grad(tensor(2.0).expand({3}));
  CHECK(clip_grad_norm_({a}, 1.0).item() == Approx(std::sqrt(12.0)));
  for (const float value : a.grad().to_vector<float>())
    CHECK(value == Approx(1 / std::sqrt(3.0)).epsilon(1e-5));
}

TEST_CASE("nothing to clip has norm 0, and nonsense is refused", "[clip_grad]") {
  CHECK(clip_grad_norm_({}, 1.0).item() == 0.0);
  CHECK(clip_grad_norm_({zeros({2}, {.requires_grad = true})}, 1.0).item() == 0.0);
  CHECK_THROWS_WITH(clip_grad_norm_({}, -1.0), Contains("max_norm must be at least 0"));
  CHECK_THROWS_WITH(clip_grad_norm_({Tensor()}, 1.0), Contains("must be defined"));
}

TEST_CASE("clipping bumps the gradients' version", "[clip_grad]") {
  const Tensor a = with_gradient({3.0, 4.0});
  const std::uint64_t version = a.grad().version();
  clip_grad_norm_({a}, 1.0);
  CHECK(a.grad().version() > version);
}

}  // namespace
}  // namespace norma::optim
