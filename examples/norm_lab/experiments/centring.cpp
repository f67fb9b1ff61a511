// R12: LayerNorm is RMSNorm of the centred vector.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/norm.h"

namespace norm_lab {

using namespace norma;

Result centring(const Settings& settings) {
  constexpr std::int64_t width = 256;
  constexpr double eps = 1e-5;
  const auto error = [&](DType dtype, double offset, bool centre) {
    manual_seed(settings.seed);
    const Tensor x = randn({64, width}, {.dtype = dtype}) + offset;
    const Tensor gain = randn({width}, {.dtype = dtype});
    const Tensor rms = rms_norm(centre ? x - x.mean({-1}, true) : x, {width}, gain, eps);
    return difference(layer_norm(x, {width}, gain, {}, eps), rms);
  };
  Series with{"RMSNorm(x − mean)", {}, {}}, without{"RMSNorm(x)", {}, {}};
  for (const double offset : {0.01, 0.03, 0.1, 0.3, 1.0, 3.0}) {
    with.x.push_back(offset);
    without.x.push_back(offset);
    with.y.push_back(error(float32, offset, true));
    without.y.push_back(error(float32, offset, false));
  }
  return {.claim = "LayerNorm without bias is RMSNorm of x − mean(x).",
          .source = "R12; the second article",
          .setting = "64 vectors of width 256, N(1, 1), gains of N(0, 1), eps 1e-5, largest error",
          .rows = {{"float32", at_most(5e-6), error(float32, 1.0, true)},
                   {"float64", at_most(1e-13), error(float64, 1.0, true)},
                   {"without centring, mean 1", at_least(0.1), error(float32, 1.0, false),
                    Tests::reference}},
          .finding = "What LayerNorm adds to RMSNorm is the projection that takes the mean away.",
          .charts = {{.title = "Distance of LayerNorm from RMSNorm",
                      .x_label = "mean of x",
                      .y_label = "largest difference",
                      .log_x = true,
                      .log_y = true,
                      .series = {with, without}}}};
}

}  // namespace norm_lab
