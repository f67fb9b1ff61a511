// L12: which learning rates each placement and each norm bears.
#include "norm_lab/experiments/list.h"
#include "norm_lab/toy.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace norm_lab {

using namespace norma;

namespace {

const std::vector<double> kRates = {3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1};

/// Ratio of the largest and the smallest rate that learned; 0 where none did.
double range(const std::vector<double>& losses, double best) {
  double low = 0.0, high = 0.0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (!(losses[i] <= best + 0.5)) continue;
    if (low == 0.0) low = kRates[i];
    high = kRates[i];
  }
  return low > 0.0 ? high / low : 0.0;
}

double lowest(const Chart& chart) {
  double best = std::numeric_limits<double>::infinity();
  for (const Series& series : chart.series)
    for (const double loss : series.y)
      if (std::isfinite(loss)) best = std::min(best, loss);
  return best;
}

}  // namespace

Result stability(const Settings& settings) {
  const auto run = [&](nn::NormPlacement placement, nn::NormKind norm) {
    std::vector<double> losses;
    for (const double rate : kRates)
      losses.push_back(train_toy(toy_config(4, placement, norm), {.lr = rate,
                                                                  .steps = toy_steps(settings, 150),
                                                                  .seed = settings.seed,
                                                                  .device = settings.device}));
    return losses;
  };
  Chart placements{.kind = ChartKind::heat,
                   .title = "Placements, with LayerNorm",
                   .x_label = "learning rate",
                   .value_label = "final loss; chance is 2.77"};
  Chart norms = placements;
  norms.title = "Norms, in pre-norm";
  for (const double rate : kRates) placements.categories.push_back(number(rate));
  norms.categories = placements.categories;
  for (const auto& [placement, name] : nn::EnumNames<nn::NormPlacement>::values)
    placements.series.push_back(
        {std::string(name), kRates, run(placement, nn::NormKind::layer_norm)});
  for (const auto& [norm, name] : nn::EnumNames<nn::NormKind>::values)
    norms.series.push_back({std::string(name), kRates, run(nn::NormPlacement::pre, norm)});

  const double best = std::min(lowest(placements), lowest(norms));
  std::map<std::string, double> ranges, losses;
  Table table{.title = "Range of learning rates that learn, and the best loss",
              .columns = {"placement or norm", "largest / smallest rate", "best loss"}};
  for (const Chart* chart : {&placements, &norms})
    for (const Series& series : chart->series) {
      const std::string name = (chart == &norms ? "pre with " : "") + series.name;
      double least = std::numeric_limits<double>::infinity();
      for (const double loss : series.y)
        if (std::isfinite(loss)) least = std::min(least, loss);
      ranges[name] = range(series.y, best);
      losses[name] = least;
      table.rows.push_back({name, number(ranges[name]), number(least)});
    }
  return {
      .claim =
          "At their best rates placements are alike; what sets them apart is the range of "
          "learning rates that they bear, and pre-norm's is wider than post-norm's.",
      .source = "L12, R33",
      .setting =
          "4 layers of width 32, 150 steps of AdamW without warm-up, batch 32 × 8 tokens, "
          "task: say the previous token; a rate learns where the loss comes within 0.5 of the best "
          "of all",
      .rows = {{"pre: range of rates / that of post", at_least(1.01),
                ranges["pre"] / std::max(1.0, ranges["post"])},
               {"pre: best loss − best loss of post", near(0, 0.5), losses["pre"] - losses["post"]},
               {"pre with RMSNorm: range / that with LayerNorm", between(0.3, 3.5),
                ranges["pre with rms_norm"] / std::max(1.0, ranges["pre with layer_norm"]),
                Tests::reference},
               {"none: range / that of pre", at_most(1), ranges["none"] / ranges["pre"],
                Tests::reference}},
      .depends_on = "depth and steps: four layers forgive post-norm much that twelve do not",
      .finding =
          "One seed, one small task: read the heat maps for where a row breaks off, not for "
          "differences in the second digit.",
      .charts = {placements, norms},
      .tables = {table}};
}

}  // namespace norm_lab
