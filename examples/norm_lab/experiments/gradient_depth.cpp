// L3: the gradient of the last layer in models of growing depth, and of all layers in one.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norm_lab/reference_model.h"
#include "norma/core/random.h"
#include "norma/ops/loss.h"

#include <algorithm>
#include <cmath>

namespace norm_lab {

using namespace norma;

namespace {

/// Gradient norms of fc2.weight, by layer, geometric mean of some seeds.
std::vector<double> profile(nn::NormPlacement placement, std::int64_t layers, std::uint64_t seed) {
  constexpr int seeds = 4;
  std::vector<double> logs(static_cast<std::size_t>(layers), 0.0);
  for (int i = 0; i < seeds; ++i) {
    manual_seed(seed + static_cast<std::uint64_t>(i));
    ReferenceModel model(placement, layers);
    const ReferenceBatch batch;
    const nn::Monitor monitor(model, [](const nn::NamedModule&) { return false; });
    cross_entropy(model(batch.inputs), batch.classes).backward();
    std::size_t layer = 0;
    for (const nn::ParameterStats& stats : monitor.parameters())
      if (stats.name.ends_with("fc2.weight"))
        logs[layer++] += std::log(stats.gradient_norm) / seeds;
  }
  for (double& value : logs) value = std::exp(value);
  return logs;
}

}  // namespace

Result gradient_depth(const Settings& settings) {
  using P = nn::NormPlacement;
  const std::vector<double> depths = {2, 6, 12, 24, 48, 96};
  Chart by_depth{.title = "Gradient of the last feed-forward",
                 .x_label = "layers of the model",
                 .y_label = "gradient norm of W₂",
                 .log_x = true,
                 .log_y = true};
  Chart by_layer{.title = "Gradients of all feed-forwards, 24 layers",
                 .x_label = "layer",
                 .y_label = "gradient norm of W₂",
                 .log_y = true};
  std::vector<double> exponents;
  std::vector<std::vector<double>> profiles;
  for (const P placement : {P::pre, P::post, P::deep_norm}) {
    Series series{std::string(nn::to_string(placement)), depths, {}};
    for (const double depth : depths) {
      const auto gradients = profile(placement, static_cast<std::int64_t>(depth), settings.seed);
      series.y.push_back(gradients.back());
      if (depth == 24) profiles.push_back(gradients);
    }
    exponents.push_back(fit_power(depths, series.y).slope);
    by_layer.series.push_back({series.name, counted(24), profiles.back()});
    by_depth.series.push_back(series);
  }
  const auto [least, most] = std::minmax_element(profiles[2].begin(), profiles[2].end());
  return {
      .claim =
          "At the start the gradient of the last layer falls as 1/√L in pre-norm and does not "
          "fall in post-norm.",
      .source = "L3; Xiong et al. 2020, theorem 1",
      .setting =
          "2 … 96 layers of width 64, uniform attention, Xavier's initial values, two classes "
          "on the mean of 16 tokens, geometric mean of 4 seeds",
      .rows = {{"pre: exponent over depth", near(-0.5, 0.25), exponents[0]},
               {"post: exponent over depth", at_least(-0.2), exponents[1]},
               {"deep_norm: exponent over depth", near(-0.5, 0.2), exponents[2], Tests::reference},
               {"deep_norm, 24 layers: largest / smallest layer", at_most(1.5), *most / *least,
                Tests::reference},
               {"pre, 24 layers: first / last layer", at_least(1.5),
                profiles[0].front() / profiles[0].back(), Tests::reference}},
      .finding =
          "Pre-norm's gradients are larger at the bottom, the mismatch that NormFormer names. "
          "With a loss on the mean of all tokens post-norm shows no vanishing at the bottom.",
      .charts = {by_depth, by_layer}};
}

}  // namespace norm_lab
