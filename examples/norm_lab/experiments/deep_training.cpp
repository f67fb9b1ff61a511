// L5, R38: hundreds of layers, without warm-up.
#include "norm_lab/experiments/list.h"
#include "norm_lab/toy.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace norm_lab {

using namespace norma;

Result deep_training(const Settings& settings) {
  using P = nn::NormPlacement;
  const std::int64_t layers = settings.large() ? 1000 : settings.quick ? 6 : 200;
  ToyTraining training{.steps = toy_steps(settings, settings.large() ? 300 : 40),
                       .samples = 8,
                       .shift = settings.large() ? 1 : 0,
                       .seed = settings.seed,
                       .device = settings.device};
  const std::vector<double> rates = {1e-4, 3e-4, 1e-3, 3e-3};
  const double chance = std::log(static_cast<double>(ToyModel::kVocabulary));

  Chart chart{.kind = ChartKind::heat,
              .title = fmt::format("{} layers without warm-up", layers),
              .x_label = "learning rate",
              .value_label = "final loss; chance is 2.77"};
  for (const double rate : rates) chart.categories.push_back(number(rate));
  std::vector<double> best;
  for (const P placement : {P::deep_norm, P::pre, P::scaled, P::post, P::none}) {
    Series series{std::string(nn::to_string(placement)), rates, {}};
    for (const double rate : rates) {
      training.lr = rate;
      series.y.push_back(train_toy(toy_config(layers, placement), training));
    }
    double lowest = std::numeric_limits<double>::infinity();
    for (const double loss : series.y)
      if (std::isfinite(loss)) lowest = std::min(lowest, loss);
    best.push_back(lowest / chance);
    chart.series.push_back(series);
  }
  return {
      .claim = "DeepNorm trains hundreds of layers without warm-up; post-norm does not.",
      .source = "R38, L5; the third article (“1000 layers without any warm-up”), Wang et al. 2022",
      .setting =
          fmt::format("{} layers of width 32, {} steps of AdamW without warm-up, batch 8 × 8 "
                      "tokens, task: say the {} token; best of the rates",
                      layers, training.steps, training.shift == 0 ? "same" : "previous"),
      .rows = {{"deep_norm: best loss / chance", at_most(0.5), best[0]},
               {"post: best loss / chance", at_least(0.8), best[3]},
               {"pre: best loss / chance", at_most(0.5), best[1], Tests::reference},
               {"scaled: best loss / chance", at_most(0.5), best[2], Tests::reference},
               {"none: best loss / chance", at_least(0.8), best[4], Tests::reference}},
      .depends_on = "the depth and the learning rate; see the heat map",
      .finding =
          "The paper's 1,000 layers are 2,500 sublayers of an encoder and a decoder, and its "
          "own recipe has a warm-up; this run has none.",
      .charts = {chart}};
}

}  // namespace norm_lab
