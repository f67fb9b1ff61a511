// R19: is a fresh LayerNorm transparent? And what scale invariance does to gradients.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/nn/norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/linear.h"
#include "norma/ops/norm.h"
#include "norma/ops/reduction.h"

namespace norm_lab {

using namespace norma;

Result identity(const Settings& settings) {
  constexpr std::int64_t width = 64;
  manual_seed(settings.seed);
  const Tensor x = 3.0 * randn({128, width}) + 1.0;
  nn::LayerNorm norm(width);
  const double moved = rms(norm(x) - x) / rms(x);

  const Tensor input = randn({128, width}), cotangent = randn({128, width});
  const Tensor start = randn({width, width});
  const auto gradient_norm = [&](double scale) {
    const Tensor w = (start * scale).detach().requires_grad_();
    (layer_norm(linear(input, w), {width}, {}, {}, 0.0) * cotangent).sum().backward();
    return length(w.grad());
  };
  const std::vector<double> scales = {0.1, 0.3, 1.0, 3.0, 10.0};
  std::vector<double> norms, inverse;
  for (const double scale : scales) {
    norms.push_back(gradient_norm(scale));
    inverse.push_back(gradient_norm(1.0) / scale);
  }
  return {
      .claim = "With gain 1 and bias 0 LayerNorm is nearly the identity, “transparent”.",
      .source = "R19; the third and fourth article",
      .setting = "128 vectors of width 64, N(1, 3²); gradients of LN(W x) for W times 0.1 … 10",
      .rows = {{"change of the input, relative", at_most(0.05), moved},
               {"gradient by 10 W / gradient by W", about(0.1, 0.01),
                gradient_norm(10.0) / gradient_norm(1.0), Tests::reference},
               {"exponent of the gradient over the size of W", near(-1.0, 0.01),
                fit_power(scales, norms).slope, Tests::reference}},
      .finding =
          "It standardizes, whatever its parameters. What is true is that the gradient of the "
          "weights before a norm falls as 1 / |W|: large weights learn slowly, by themselves.",
      .charts = {{.title = "Gradient of weights before a LayerNorm",
                  .x_label = "factor on W",
                  .y_label = "gradient norm",
                  .log_x = true,
                  .log_y = true,
                  .series = {{"measured", scales, norms}, {"1 / |W|", scales, inverse, true}}}}};
}

}  // namespace norm_lab
