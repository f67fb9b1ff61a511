// R7: does a norm keep the direction of a vector?
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"
#include "norma/ops/norm.h"
#include "norma/ops/reduction.h"

#include <cmath>

namespace norm_lab {

using namespace norma;

namespace {

/// 1 - cosine as the usual formula gives it in the dtype of the operands.
double rounded_turn(const Tensor& a, const Tensor& b) {
  const Tensor cosine = (a * b).sum({-1}) / (vector_norm(a, {-1}) * vector_norm(b, {-1}));
  return largest(1.0 - cosine);
}

}  // namespace

Result direction(const Settings& settings) {
  manual_seed(settings.seed);
  const Tensor x = randn({64, 512}) + 0.3;
  const Tensor gain = 1.0 + 0.5 * randn({512});
  const Tensor y = rms_norm(x, {512});
  const Tensor learned = rms_norm(x, {512}, gain);
  const Tensor centred = layer_norm(x, {512});
  const double share = std::pow(average(x) / rms(x), 2.0);

  std::vector<double> offsets, turns, theory;
  for (const double offset : {0.03, 0.1, 0.3, 1.0, 3.0}) {
    const Tensor shifted = randn({64, 512}) + offset;
    offsets.push_back(offset);
    turns.push_back(turn(shifted, layer_norm(shifted, {512})));
    theory.push_back(1.0 - 1.0 / std::sqrt(1.0 + offset * offset));
  }
  return {.claim = "RMSNorm keeps the direction: 1 − cosine is below 1e-9.",
          .source = "R7; the first article",
          .setting = "64 vectors of N(0.3, 1), width 512, float32; the cosine in float64",
          .rows = {{"RMSNorm, gain 1", at_most(1e-9), turn(x, y)},
                   {"RMSNorm, gain of N(1, 0.5²)", at_most(1e-9), turn(x, learned)},
                   {"the cosine itself in float32, gain 1", at_most(1e-9), rounded_turn(x, y)},
                   {"the same, as expected of float32", at_most(1e-6), rounded_turn(x, y),
                    Tests::reference},
                   {"LayerNorm: (1 − cosine) / (mean² / rms²)", between(0.4, 1.1),
                    turn(x, centred) / share, Tests::reference}},
          .depends_on =
              "the gain and the precision of the check: one gain for all elements keeps the "
              "direction, a learned vector of gains does not, and a cosine computed in "
              "float32 cannot show less than 1e-7",
          .finding =
              "LayerNorm turns a vector by as much as its mean counts: it removes the part along "
              "(1, …, 1).",
          .charts = {{.title = "LayerNorm turns vectors with a mean",
                      .x_label = "mean of the elements / their standard deviation",
                      .y_label = "1 − cosine",
                      .log_x = true,
                      .log_y = true,
                      .series = {{"measured", offsets, turns},
                                 {"1 − 1 / √(1 + m²)", offsets, theory, true}}}}};
}

}  // namespace norm_lab
