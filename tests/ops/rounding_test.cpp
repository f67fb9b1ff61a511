// The tolerances of the op table (support/rounding.h) see what they are there for.
#include "support/rounding.h"
#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/norm.h"
#include "norma/ops/reduction.h"
#include "norma/ops/view.h"
#include "support/catch.h"
#include "support/compare.h"

namespace norma::test {
namespace {

/// A LayerNorm in float64: y, and the gradients by x and weight for a random dy.
struct Norm {
  explicit Norm(const Shape& shape)
      : x(random(shape, 1)), weight(random({shape[1]}, 2, 0.5, 1.5)), dy(random(shape, 3)) {}

  TensorList results(const TensorList& in) const {
    const Tensor a = in[0].detach().requires_grad_(), w = in[1].detach().requires_grad_();
    const Tensor y = composite::layer_norm(a, {a.size(1)}, w, Tensor(), 1e-5);
    TensorList all{y.detach()};
    for (const Tensor& gradient : grad(TensorList{y}, {a, w}, {.grad_outputs = {in[2]}}))
      all.push_back(gradient);
    return all;
  }
  /// Whether `actual` may stand for result i.
  bool accepts(std::size_t i, const Tensor& actual) const {
    const TensorList inputs{x, weight, dy};
    const TensorList expected = results(inputs);
    const auto sizes =
        sizes_of_terms([&](const TensorList& in) { return results(in); }, inputs, expected);
    return within_rounding(actual.to(float32), expected[i], sizes[i],
                           longest_sum(expected[i], inputs), 0)
        .ok;
  }
  Tensor normalized() const {
    const Tensor d = x - x.mean({1}, true);
    return d * rsqrt(square(d).mean({1}, true) + 1e-5);
  }

  Tensor x, weight, dy;
};

Tensor rounded(const Tensor& tensor) { return tensor.to(bfloat16).to(tensor.dtype()); }

}  // namespace

TEST_CASE("tolerances reject a gradient without its mean term, also of a wide row") {
  for (const std::int64_t width : {33, 65536}) {
    const Norm norm({2, width});
    const Tensor h = norm.normalized(), g = norm.dy * norm.weight;
    const Tensor d = norm.x - norm.x.mean({1}, true);
    const Tensor rstd = rsqrt(square(d).mean({1}, true) + 1e-5);
    const Tensor projected = g - h * (g * h).mean({1}, true);
    CHECK(norm.accepts(1, rstd * (projected - g.mean({1}, true))));
    CHECK_FALSE(norm.accepts(1, rstd * projected));
  }
}

TEST_CASE("tolerances reject weights that are rounded early") {
  const Norm norm({33, 255});
  CHECK(norm.accepts(0, norm.normalized() * norm.weight));
  CHECK_FALSE(norm.accepts(0, norm.normalized() * rounded(norm.weight)));
}

TEST_CASE("tolerances reject partial sums in bfloat16, also of 65536 rows") {
  for (const std::int64_t rows : {64, 65536}) {
    const Norm norm({rows, 3});
    const Tensor parts = (norm.dy * norm.normalized()).reshape({64, rows / 64, 3}).sum({1});
    CHECK(norm.accepts(2, parts.sum({0})));
    CHECK_FALSE(norm.accepts(2, rounded(parts).sum({0})));
  }
}

TEST_CASE("tolerances grow with the chain of a sum, not with its length") {
  CHECK(longest_sum(zeros({3}), {zeros({65537, 3})}) == 65537);
  CHECK(longest_sum(zeros({33, 255}), {zeros({33, 255}), zeros({255})}) == 255);
  CHECK(longest_sum(zeros({1}), {zeros({33, 255})}) == 33 * 255);
}

}  // namespace norma::test
