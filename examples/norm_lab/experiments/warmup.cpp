// L6, R33: who needs a warm-up.
#include "norm_lab/experiments/list.h"
#include "norm_lab/toy.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace norm_lab {

using namespace norma;

Result warmup(const Settings& settings) {
  using P = nn::NormPlacement;
  const std::int64_t layers = 12;
  const std::vector<double> rates = {3e-4, 1e-3, 3e-3, 1e-2};
  Chart chart{.kind = ChartKind::heat,
              .title = "Final loss by warm-up and learning rate",
              .x_label = "learning rate",
              .value_label = "final loss; chance is 2.77"};
  for (const double rate : rates) chart.categories.push_back(number(rate));
  const auto run = [&](P placement, std::int64_t steps) {
    Series series{fmt::format("{}, {} steps", nn::to_string(placement), steps), rates, {}};
    for (const double rate : rates) {
      const double loss =
          train_toy(toy_config(layers, placement), {.lr = rate,
                                                    .steps = toy_steps(settings, 200),
                                                    .warmup = steps,
                                                    .samples = 16,
                                                    .seed = settings.seed,
                                                    .device = settings.device});
      series.y.push_back(loss);
    }
    chart.series.push_back(series);
    return series.y;
  };
  const auto pre = run(P::pre, 0), pre_warm = run(P::pre, 100);
  const auto post = run(P::post, 0), post_warm = run(P::post, 100);
  // A run that diverged counts as one that learned nothing.
  const double chance = std::log(static_cast<double>(ToyModel::kVocabulary));
  const auto value = [&](double loss) {
    return std::isfinite(loss) ? std::min(loss, chance) : chance;
  };
  const auto gain = [&](const std::vector<double>& cold, const std::vector<double>& warm) {
    double most = -chance;
    for (std::size_t i = 0; i < cold.size(); ++i)
      most = std::max(most, value(cold[i]) - value(warm[i]));
    return most;
  };
  const auto learned = [&](const std::vector<double>& losses) {
    return static_cast<double>(std::count_if(losses.begin(), losses.end(), [&](double loss) {
      return std::isfinite(loss) && loss < 0.5 * chance;
    }));
  };
  return {
      .claim = "Pre-norm needs no warm-up and bears larger learning rates; post-norm needs it.",
      .source =
          "R33, L6; Xiong et al. 2020, Nguyen and Salazar 2019. The articles' own scripts give "
          "pre 1e-3 and post 1e-4; here both have one grid",
      .setting =
          "12 layers of width 32, 200 steps of AdamW, batch 16 × 8 tokens, task: say the previous "
          "token; warm-up of 0 or 100 steps",
      .rows = {{"pre: rates that learn without warm-up, of 4", at_least(2), learned(pre)},
               {"post: rates that learn without warm-up, of 4", at_most(1), learned(post)},
               {"post: largest gain of loss by warm-up", at_least(0.3), gain(post, post_warm)},
               {"pre: largest gain of loss by warm-up", at_most(1.0), gain(pre, pre_warm),
                Tests::reference}},
      .depends_on = "the learning rate: the smaller it is, the less a warm-up is missed",
      .finding = "A cell that says “diverged” had a loss past 100 or none.",
      .charts = {chart}};
}

}  // namespace norm_lab
