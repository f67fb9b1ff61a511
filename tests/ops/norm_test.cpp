#include "support/catch.h"

#include "norma/core/allocator.h"
#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/norm.h"
#include "support/compare.h"

#include <cmath>

namespace norma::test {

TEST_CASE("norms of known values") {
  const Tensor x = tensor({{1.0, 3.0}, {-2.0, 2.0}}, {.dtype = float64});
  const Tensor weight = tensor({1.0, 10.0}, {.dtype = float64});
  const Tensor bias = tensor({0.0, 1.0}, {.dtype = float64});
  CHECK(allclose(layer_norm(x, {2}, weight, bias, 0.0), {-1, 11, -1, 11}));
  const double r = std::sqrt(5.0);
  CHECK(allclose(rms_norm(x, {2}, weight, 0.0), {1 / r, 30 / r, -1, 10}));
  CHECK(allclose(layer_norm(x, {2}, {}, {}, 3.0),
                 {-0.5, 0.5, -2 / std::sqrt(7.0), 2 / std::sqrt(7.0)}));
}

TEST_CASE("the default eps of rms_norm is that of the statistics") {
  CHECK(rms_norm(full({1}, 1e-6), {1}).item() ==
        Approx(1e-6 / std::sqrt(1e-12 + std::numeric_limits<float>::epsilon())));
  CHECK(rms_norm(full({1}, 1e-8, {.dtype = float64}), {1}).item() ==
        Approx(1e-8 / std::sqrt(1e-16 + std::numeric_limits<double>::epsilon())));
}

TEST_CASE("a large mean does not spoil the statistics") {
  // Mean 1e4, standard deviation 1: E[x^2] - E[x]^2 in float32 would be off by the variance itself.
  const Tensor x = (random({16, 1024}, 1, -1.7, 1.7) + 1e4).to(float32);
  const Tensor exact = composite::layer_norm(x.to(float64), {1024});
  CHECK(allclose(layer_norm(x, {1024}), exact, {1e-5, 1e-5}));

  // Backward has the mean in float32, half a unit (1e4 * 2^-24) off at worst, and so has each
  // normalized value: once in dx, where factors of 1/sqrt(width) meet it, 16 times in dweight.
  const double off = 1e4 / 0x1p24;
  using Norm = Tensor (*)(const Tensor&, const Shape&, const Tensor&, const Tensor&, double);
  const auto gradients = [&](DType dtype, Norm norm) {
    const TensorList leaves{x.to(dtype).detach().requires_grad_(),
                            random({1024}, 2, 0.5, 1.5).to(float32).to(dtype).requires_grad_(),
                            random({1024}, 3).to(float32).to(dtype).requires_grad_()};
    const Tensor dy = random({16, 1024}, 4).to(float32).to(dtype);
    return grad({norm(leaves[0], {1024}, leaves[1], leaves[2], 1e-5)}, leaves,
                {.grad_outputs = {dy}});
  };
  const TensorList kernel = gradients(float32, layer_norm);
  const TensorList definition = gradients(float64, composite::layer_norm);
  CHECK(allclose(kernel[0], definition[0], {1e-5, off}));
  CHECK(allclose(kernel[1], definition[1], {1e-5, 16 * off}));
  CHECK(allclose(kernel[2], definition[2], {1e-5, 1e-5}));
}

TEST_CASE("norms do not ask where their memory starts") {
  // One element past an aligned block.
  const auto shifted = [](const Tensor& x) {
    const Tensor result =
        empty({x.numel() + 1}, {.dtype = x.dtype()}).narrow(0, 1, x.numel()).view(x.shape());
    return result.copy_(x.detach()).requires_grad_();
  };
  for (const DType dtype : {float32, float64, float16, bfloat16}) {
    INFO(dtype_name(dtype));
    const Tensor x = random({5, 131}, 1).to(dtype).requires_grad_();
    const Tensor weight = random({131}, 2).to(dtype).requires_grad_();
    const Tensor bias = random({131}, 3).to(dtype).requires_grad_();
    const Tensor dy = random({5, 131}, 4).to(dtype);
    const auto run = [](const TensorList& in, const Tensor& cotangent) {
      const TensorList outputs{layer_norm(in[0], {131}, in[1], in[2]),
                               rms_norm(in[0], {131}, in[1])};
      TensorList results = grad(outputs, in, {.grad_outputs = {cotangent, cotangent}});
      results.insert(results.end(), outputs.begin(), outputs.end());
      return results;
    };
    const TensorList moved{shifted(x), shifted(weight), shifted(bias)};
    REQUIRE(moved[0].is_contiguous());
    REQUIRE(reinterpret_cast<std::uintptr_t>(moved[0].raw_data()) % 16 != 0);
    const TensorList aligned = run({x, weight, bias}, dy);
    const TensorList unaligned = run(moved, shifted(dy).detach());
    for (std::size_t i = 0; i < aligned.size(); ++i) CHECK(bitwise_equal(unaligned[i], aligned[i]));
  }
}

TEST_CASE("a constant row gives the bias, and no NaN") {
  const Tensor x = full({2, 33}, 3.7, {.requires_grad = true});
  const Tensor bias = random({33}, 1).to(float32);
  const Tensor y = layer_norm(x, {33}, {}, bias);
  CHECK(allclose(y, bias.expand({2, 33}), {1e-5, 1e-4}));
  const Tensor dx = grad({y}, {x}, {.grad_outputs = {random({2, 33}, 2).to(float32)}})[0];
  CHECK(allclose(isfinite(dx), ones({2, 33})));
  CHECK(allclose(rms_norm(zeros({1, 4}), {4}), {0, 0, 0, 0}));
}

// Up to rounding: all of them together come from loops of their own.
TEST_CASE("each gradient comes alone as it comes with the others") {
  const Tensor x = random({5, 33}, 1).to(float32);
  const Tensor w = random({33}, 2).to(float32);
  const Tensor b = random({33}, 3).to(float32);
  const Tensor dy = random({5, 33}, 4).to(float32);
  const auto gradients = [&](std::vector<int> wanted) {
    TensorList leaves{x.clone(), w.clone(), b.clone()};
    TensorList targets;
    for (const int i : wanted)
      targets.push_back(leaves[static_cast<std::size_t>(i)].requires_grad_());
    return grad({layer_norm(leaves[0], {33}, leaves[1], leaves[2])}, targets,
                {.grad_outputs = {dy}});
  };
  const TensorList all = gradients({0, 1, 2});
  for (const int i : {0, 1, 2})
    CHECK(allclose(gradients({i})[0], all[static_cast<std::size_t>(i)], {1e-6, 1e-6}));
}

TEST_CASE("rows of an output that no cache holds are those of a small one") {
  // 72 MiB: more than half of the third cache of what runs the tests, so that it is written past
  // it. 1023: rows of which a part of a line is left over are not.
  for (const std::int64_t width : {1024, 1023}) {
    const std::int64_t rows = 18432, few = 70;
    const Tensor x = random({few, width}, 1).to(float32);
    const Tensor w = random({width}, 2).to(float32), b = random({width}, 3).to(float32);
    const auto run = [&](const Tensor& first_rows, std::int64_t count) {
      Tensor all = zeros({count, width});
      all.narrow(0, count - few, few).copy_(first_rows);
      all.requires_grad_();
      const Tensor y = layer_norm(all, {width}, w, b);
      const Tensor dx = grad({y}, {all}, {.grad_outputs = {y.detach()}})[0];
      return std::pair{y.narrow(0, count - few, few).clone(),
                       dx.narrow(0, count - few, few).clone()};
    };
    const auto [y, dx] = run(x, rows);
    const auto [small_y, small_dx] = run(x, few);
    CHECK(bitwise_equal(y, small_y));
    CHECK(bitwise_equal(dx, small_dx));
  }
}

TEST_CASE("norms keep statistics only while recording, and never the normalized values") {
  const Tensor x = random({64, 512}, 1).to(float32);
  const std::int64_t before = memory_stats().current;
  const Tensor plain = layer_norm(x, {512});
  const std::int64_t without = memory_stats().current - before;
  x.requires_grad_();
  const Tensor recorded = layer_norm(x, {512});
  const std::int64_t with = memory_stats().current - before - without;
  CHECK(without == static_cast<std::int64_t>(plain.nbytes()));
  CHECK(with > without);
  CHECK(with - without <= 4096);
}

TEST_CASE("the gradient is orthogonal to what the norm removes") {
  const Tensor x = random({4, 100}, 1).requires_grad_();
  const Tensor dy = random({4, 100}, 2);
  const Tensor layer = grad({layer_norm(x, {100}, {}, {}, 0.0)}, {x}, {.grad_outputs = {dy}})[0];
  CHECK(allclose(layer.sum({1}), zeros({4}), {0, 1e-12}));
  CHECK(allclose((layer * x.detach()).sum({1}), zeros({4}), {0, 1e-11}));
  const Tensor rms = grad({rms_norm(x, {100}, {}, 0.0)}, {x}, {.grad_outputs = {dy}})[0];
  CHECK(allclose((rms * x.detach()).sum({1}), zeros({4}), {0, 1e-11}));
}

}  // namespace norma::test
