// L7, R42: attention scores and their entropy under large learning rates.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norm_lab/toy.h"
#include "norma/core/grad_mode.h"
#include "norma/core/random.h"

#include <algorithm>
#include <cmath>

namespace norm_lab {

using namespace norma;

namespace {

struct Outcome {
  double loss = 0.0, logit = 0.0, entropy = 0.0;  // largest score and least entropy of all layers
};

Outcome run(nn::TransformerConfig config, double rate, const Settings& settings) {
  manual_seed(settings.seed);
  ToyModel model(config);
  model.to(settings.device);
  Outcome result;
  result.loss = train_toy(model, {.lr = rate,
                                  .steps = toy_steps(settings, 200),
                                  .seed = settings.seed,
                                  .device = settings.device});
  nn::Monitor monitor(model, of_type("MultiheadAttention"));
  toy_loss(model, 1, settings.device);
  result.entropy = std::numeric_limits<double>::infinity();
  for (const nn::AttentionStats& stats : monitor.attention()) {
    result.logit = std::max(result.logit, stats.max_logit);
    result.entropy = std::min(result.entropy, stats.entropy);
  }
  return result;
}

}  // namespace

Result logit_growth(const Settings& settings) {
  const nn::TransformerConfig plain = toy_config(4, nn::NormPlacement::pre);
  const auto with = [&](nn::QKNorm form, double cap = 0.0) {
    nn::TransformerConfig config = plain;
    config.qk_form = form;
    config.softcap = cap;
    return config;
  };
  const std::vector<std::pair<const char*, nn::TransformerConfig>> forms = {
      {"none", plain},
      {"QK-LN", with(nn::QKNorm::vit22b)},
      {"QK-RMS", with(nn::QKNorm::qwen3)},
      {"L2 and g", with(nn::QKNorm::henry)},
      {"soft cap 50", with(nn::QKNorm::none, 50.0)}};
  const std::vector<double> rates = {1e-3, 3e-3, 1e-2, 3e-2};
  Chart logits{.title = "Largest attention score after training",
               .x_label = "learning rate",
               .y_label = "largest |score|",
               .log_x = true,
               .log_y = true};
  Chart entropies{.title = "Entropy of attention, least of the layers",
                  .x_label = "learning rate",
                  .y_label = "entropy in nats; log 8 = 2.08 is uniform",
                  .log_x = true};
  Chart losses{.kind = ChartKind::heat,
               .title = "Final loss",
               .x_label = "learning rate",
               .value_label = "chance is 2.77"};
  for (const double rate : rates) losses.categories.push_back(number(rate));
  for (const auto& [name, config] : forms) {
    Series logit{name, rates, {}}, entropy{name, rates, {}}, loss{name, rates, {}};
    for (const double rate : rates) {
      const Outcome outcome = run(config, rate, settings);
      logit.y.push_back(outcome.logit);
      entropy.y.push_back(outcome.entropy);
      loss.y.push_back(outcome.loss);
    }
    logits.series.push_back(logit);
    entropies.series.push_back(entropy);
    losses.series.push_back(loss);
  }
  const auto& none = logits.series[0].y;
  const auto largest_of = [&](std::size_t form) {
    const auto& values = logits.series[form].y;
    return *std::max_element(values.begin(), values.end());
  };
  const auto least_of = [&](std::size_t form) {
    const auto& values = entropies.series[form].y;
    return *std::min_element(values.begin(), values.end());
  };
  return {
      .claim =
          "Without QK-norm attention scores grow with the learning rate and the entropy of "
          "attention collapses; QK-norm prevents it.",
      .source = "R42, L7; ViT-22B, Wortsman et al. 2023 (small models show it at large rates)",
      .setting =
          "4 pre-norm layers of width 32, 200 steps of AdamW without warm-up, task: say the "
          "previous token (which asks for attention to one place)",
      .rows = {{"none: largest score at 3e-2 / at 1e-3", at_least(3), none.back() / none.front()},
               {"none: least entropy, nats", at_most(0.3), least_of(0)},
               {"QK-RMS: largest score of all rates / that of none", at_most(0.5),
                largest_of(2) / largest_of(0)},
               {"QK-RMS: least entropy, nats", at_least(0.3), least_of(2)},
               {"soft cap: largest score", at_most(50), largest_of(4), Tests::reference},
               {"L2 and g: largest score / that of none", at_most(1.0),
                largest_of(3) / largest_of(0), Tests::reference}},
      .depends_on =
          "which of the two is meant: QK-norm bounds the scores, but an entropy near 0 it "
          "allows, and this task asks for one",
      .finding =
          "A low entropy is also what the task asks for: attention to one place is right "
          "here. Trouble shows where scores grow and the loss does not fall.",
      .charts = {logits, entropies, losses}};
}

}  // namespace norm_lab
