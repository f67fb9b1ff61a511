// L8, R40: what the deep layers of a trained model are worth.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norm_lab/toy.h"
#include "norma/core/grad_mode.h"
#include "norma/core/random.h"

#include <cmath>

namespace norm_lab {

using namespace norma;

namespace {

constexpr std::int64_t kLayers = 8;

struct Depth {
  double loss = 0.0;
  std::vector<double> without;  // loss with one layer left out, by layer
  std::vector<double> turns;    // 1 - cosine of a layer's input and output
};

Depth study(nn::NormPlacement placement, const Settings& settings) {
  manual_seed(settings.seed);
  ToyModel model(toy_config(kLayers, placement));
  model.to(settings.device);
  train_toy(model, {.lr = 1e-3,
                    .steps = toy_steps(settings, 300),
                    .seed = settings.seed,
                    .device = settings.device});
  const auto loss = [&] {
    manual_seed(settings.seed + 1);  // the same sequences each time
    return toy_loss(model, 1, settings.device);
  };
  Depth result{.loss = loss(), .without = {}, .turns = {}};
  for (const nn::NamedModule& one : model.named_modules()) {
    if (one.module->type_name() != "TransformerBlock") continue;
    RemovableHandle watch = one.module->register_forward_hook(
        [&](nn::Module&, const Tensor& x, const Tensor& y) { result.turns.push_back(turn(x, y)); });
    loss();
    watch.remove();
    RemovableHandle skip = one.module->register_forward_hook(
        [](nn::Module&, const Tensor& x, const Tensor&) { return x; });
    result.without.push_back(loss());
    skip.remove();
  }
  return result;
}

/// Mean of the second half over mean of the first.
double late_share(const std::vector<double>& values) {
  double early = 0.0, late = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i)
    (2 * i < values.size() ? early : late) += values[i];
  return late / early;
}

}  // namespace

Result effective_depth(const Settings& settings) {
  using P = nn::NormPlacement;
  Chart costs{.title = "What it costs to leave one layer out",
              .x_label = "layer left out",
              .y_label = "rise of the loss",
              .log_y = true};
  Chart turns{.title = "How far a layer turns the stream",
              .x_label = "layer",
              .y_label = "1 − cosine of input and output"};
  std::vector<double> shares;
  double loss_pre = 0.0;
  for (const P placement : {P::pre, P::scaled, P::post}) {
    const Depth depth = study(placement, settings);
    if (placement == P::pre) loss_pre = depth.loss;
    Series cost{std::string(nn::to_string(placement)), counted(kLayers), depth.without};
    for (double& value : cost.y) value = std::max(value - depth.loss, 1e-4);
    costs.series.push_back(cost);
    turns.series.push_back({cost.name, counted(kLayers), depth.turns});
    shares.push_back(late_share(depth.turns));
  }
  return {
      .claim =
          "Already in a small pre-norm model, once trained, the deep layers do little, and "
          "LayerNorm scaling gives them their work back.",
      .source = "R40, L8; Sun et al. 2025 (The Curse of Depth), at 130M to 7B parameters",
      .setting =
          "8 layers of width 32, 300 steps of AdamW at 1e-3, task: say the previous token; then "
          "one layer is left out by a forward hook",
      .rows = {{"pre: turn of the stream, late layers / early layers", at_most(0.8), shares[0]},
               {"scaled: the same, over that of pre", at_least(1.0), shares[1] / shares[0]},
               {"post: the same, over that of pre", at_least(1.0), shares[2] / shares[0],
                Tests::reference},
               {"pre: loss after training", at_most(0.7), loss_pre, Tests::reference}},
      .depends_on = "the measure: the turn of the stream and the price of a layer need not agree",
      .finding =
          "The paper speaks of language models of hundreds of millions of parameters, and this "
          "run can say nothing about those: it asks whether the effect shows at toy scale.",
      .charts = {costs, turns}};
}

}  // namespace norm_lab
