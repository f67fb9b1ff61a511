// L1, R35: how the residual stream grows with depth.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norm_lab/reference_model.h"
#include "norma/core/random.h"

#include <cmath>

namespace norm_lab {

using namespace norma;

namespace {

constexpr std::int64_t kLayers = 24;

/// E[x²] behind each block.
std::vector<double> second_moments(nn::NormPlacement placement, std::uint64_t seed) {
  manual_seed(seed);
  ReferenceModel model(placement, kLayers);
  const ReferenceBatch batch;
  nn::Monitor monitor(model, of_type("TransformerBlock"));
  model(batch.inputs);
  std::vector<double> values = collect(monitor, &nn::ActivationStats::rms);
  for (double& value : values) value *= value;
  return values;
}

}  // namespace

Result growth(const Settings& settings) {
  using P = nn::NormPlacement;
  Chart chart{.title = "Size of the residual stream at the start of training",
              .x_label = "layer",
              .y_label = "E[x²]",
              .log_y = true};
  std::vector<std::vector<double>> all;
  const std::vector<double> layers = counted(kLayers);
  for (const P placement : {P::pre, P::sandwich, P::post, P::deep_norm, P::none, P::scaled}) {
    all.push_back(second_moments(placement, settings.seed));
    chart.series.push_back({std::string(nn::to_string(placement)), layers, all.back()});
  }
  const auto &pre = all[0], &sandwich = all[1], &post = all[2], &deep = all[3], &none = all[4],
             &scaled = all[5];
  const Line line = fit(layers, pre), line_sandwich = fit(layers, sandwich);
  const double factor = std::pow(none.back() / none[5], 1.0 / 18.0);
  return {.claim =
              "The residual stream of pre-norm grows linearly with depth; post-norm and DeepNorm "
              "keep it at 1; without norm it grows exponentially.",
          .source = "R35, L1; the bound of Xiong et al. 2020 is 1 + l/2 … 1 + 3l/2",
          .setting =
              "24 layers of width 64, ff 256, uniform attention, Xavier's initial values, 4 × 16 "
              "tokens of N(0, 1)",
          .rows = {{"pre: slope of E[x²] per layer", between(0.5, 1.6), line.slope},
                   {"pre: R² of the straight line", at_least(0.95), line.r_squared},
                   {"post: E[x²] after layer 24", about(1, 0.02), post.back()},
                   {"deep_norm: E[x²] after layer 24", about(1, 0.02), deep.back()},
                   {"none: factor per layer, 6 to 24", between(1.8, 3), factor},
                   {"sandwich: slope per layer", between(1.5, 2.5), line_sandwich.slope,
                    Tests::reference},
                   {"scaled: E[x²] after 24 / after 6", at_most(2), scaled.back() / scaled[5],
                    Tests::reference},
                   {"pre: after layer 24, as simulated", within_factor(25.9, 1.6), pre.back(),
                    Tests::reference},
                   {"none: after layer 24, as simulated", within_factor(1.3e9, 30), none.back(),
                    Tests::reference}},
          .finding =
              "Sandwich adds 2 per layer, because both of its branches end in a norm. LayerNorm "
              "scaling makes the growth logarithmic.",
          .charts = {chart}};
}

}  // namespace norm_lab
