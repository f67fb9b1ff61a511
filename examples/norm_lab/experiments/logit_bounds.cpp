// R41, R44: how large an attention score can be.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/random.h"
#include "norma/nn/attention.h"
#include "norma/ops/elementwise.h"

#include <cmath>

namespace norm_lab {

using namespace norma;

namespace {

constexpr std::int64_t kWidth = 128, kHeads = 4;  // head_dim 32

/// Largest score where the projections of queries and keys are `factor` times what they are at
/// first.
double largest_score(nn::AttentionConfig config, double factor, std::uint64_t seed) {
  manual_seed(seed);
  config.d_model = kWidth;
  config.num_heads = kHeads;
  nn::MultiheadAttention attention(config);
  const NoGradGuard no_grad;
  for (const nn::NamedParameter& one : attention.named_parameters())
    if (one.name == "q_proj.weight" || one.name == "k_proj.weight") one.tensor.mul_(factor);
  nn::Monitor monitor(attention);
  attention(randn({4, 64, kWidth}));
  return monitor.attention().front().max_logit;
}

/// g of the form of Henry et al. for texts of this length.
double henry_gain(std::int64_t length) {
  nn::MultiheadAttention attention(
      {.d_model = 8, .num_heads = 2, .qk_form = nn::QKNorm::henry, .qk_length = length});
  for (const nn::NamedParameter& one : attention.named_parameters())
    if (one.kind == nn::ParameterKind::scalar) return one.tensor.item();
  return 0.0;
}

}  // namespace

Result logit_bounds(const Settings& settings) {
  const std::vector<std::pair<const char*, nn::AttentionConfig>> forms = {
      {"none", {}},
      {"QK-LN", {.qk_form = nn::QKNorm::vit22b}},
      {"QK-RMS", {.qk_form = nn::QKNorm::qwen3}},
      {"L2 and g", {.qk_form = nn::QKNorm::henry, .qk_length = 256}},
      {"soft cap 50", {.softcap = 50.0}}};
  const std::vector<double> factors = {1, 3, 10, 30, 100};
  Chart chart{.title = "Largest attention score",
              .x_label = "factor on the weights of queries and keys",
              .y_label = "largest |score|",
              .log_x = true,
              .log_y = true};
  for (const auto& [name, config] : forms) {
    Series series{name, factors, {}};
    for (const double factor : factors)
      series.y.push_back(largest_score(config, factor, settings.seed));
    chart.series.push_back(series);
  }
  const auto at_100 = [&](std::size_t form) { return chart.series[form].y.back(); };
  const double bound = std::sqrt(static_cast<double>(kWidth / kHeads));
  const double g = henry_gain(256);
  return {.claim =
              "QK-norm bounds the scores whatever the weights: √d for LayerNorm and RMSNorm with "
              "gain 1, g for unit vectors; a soft cap bounds them by the cap.",
          .source = "R41, R44; Cauchy-Schwarz; Henry et al. 2020, ViT-22B, Gemma 2",
          .setting =
              "4 heads of width 32, 64 tokens of N(0, 1), weights of queries and keys times "
              "1 … 100",
          .rows = {{"QK-LN at 100: bound √32 = 5.66", at_most(bound * (1 + 1e-5)), at_100(1)},
                   {"QK-RMS at 100", at_most(bound * (1 + 1e-5)), at_100(2)},
                   {"L2 and g at 100: bound g = 15.99", at_most(g * (1 + 1e-5)), at_100(3)},
                   {"soft cap at 100", at_most(50), at_100(4)},
                   {"g for length 256", near(15.99, 0.01), g},
                   {"g for length 512", near(18.0, 0.01), henry_gain(512)},
                   {"none: exponent of the growth", near(2, 0.05),
                    fit_power(factors, chart.series[0].y).slope, Tests::reference}},
          .finding =
              "Without a norm the scores grow with the square of the weights. The bound of "
              "QK-norm moves with its learned gains.",
          .charts = {chart}};
}

}  // namespace norm_lab
