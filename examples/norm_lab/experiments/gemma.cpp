// R20: the gain 1 + weight of Gemma, and when it multiplies.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/nn/row_norms.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/norm.h"
#include "norma/ops/reduction.h"

namespace norm_lab {

using namespace norma;

Result gemma(const Settings& settings) {
  constexpr std::int64_t width = 256;
  manual_seed(settings.seed);
  const Tensor x = randn({64, width});
  nn::GemmaRMSNorm norm(width);
  const auto moved = [&](double scale) {
    return difference(norm(x * scale), x * scale) / largest(x * scale);
  };

  // Both orders in bfloat16, against float64.
  const Tensor gain = 1.0 + 0.3 * randn({width});
  const Tensor rounded_gain = gain.to(bfloat16);
  const Tensor half = x.to(bfloat16);
  const Tensor llama =
      rms_norm(half, {width}, rounded_gain, {}, {.eps = 1e-6, .cast_before_weight = true});
  const Tensor late = rms_norm(half, {width}, rounded_gain, {}, {.eps = 1e-6});
  const Tensor exact =
      rms_norm(half.to(float64), {width}, rounded_gain.to(float64), {}, {.eps = 1e-6});
  const auto relative = [&](const Tensor& y) { return rms(y.to(float64) - exact) / rms(exact); };
  const double differing = average((llama != late).to(float64));

  const std::vector<double> scales = {0.1, 0.3, 1.0, 3.0, 10.0};
  std::vector<double> outputs;
  for (const double scale : scales) outputs.push_back(rms(norm(x * scale)));
  return {
      .claim =
          "Gemma's gain 1 + weight, with weight 0 at first, makes the norm nearly the identity.",
      .source = "R20; the third article",
      .setting = "64 vectors of width 256; cast orders with gains of N(1, 0.3²) in bfloat16",
      .rows = {{"largest change of an input of rms 3, relative", at_most(0.05), moved(3.0)},
               {"difference from plain RMSNorm at the start", at_most(1e-6),
                difference(norm(x), rms_norm(x, {width}, {}, norm.eps)), Tests::reference},
               {"Llama's and Gemma's order of rounding: elements that differ, share",
                between(0.02, 0.9), differing, Tests::reference},
               {"error of Llama's order / of Gemma's", between(1.05, 2.0),
                relative(llama) / relative(late), Tests::reference}},
      .finding =
          "It is plain RMSNorm at the start, not the identity. What the offset buys: weight "
          "decay pulls the gain to 1, and weights near 0 have finer steps in 16 bits. "
          "Gemma also multiplies before it rounds, and so is a little more exact than Llama.",
      .charts = {
          {.title = "Size of the output of GemmaRMSNorm at its start",
           .x_label = "rms of the input",
           .y_label = "rms of the output",
           .log_x = true,
           .log_y = true,
           .series = {{"measured", scales, outputs}, {"the identity", scales, scales, true}}}}};
}

}  // namespace norm_lab
