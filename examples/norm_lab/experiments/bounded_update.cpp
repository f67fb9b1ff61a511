// L4, R36, R37: what DeepNorm bounds.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norm_lab/reference_model.h"
#include "norma/core/grad_mode.h"
#include "norma/core/random.h"
#include "norma/ops/loss.h"
#include "norma/optim/sgd.h"

#include <cmath>

namespace norm_lab {

using namespace norma;

namespace {

struct Step {
  double squares = 0.0;  // of all gradients by matrices of the encoder
  double change = 0.0;   // of the loss
};

/// Geometric means over some seeds of one step of SGD.
Step first_step(nn::NormPlacement placement, std::int64_t layers, std::uint64_t seed) {
  constexpr int seeds = 4;
  Step logs;
  for (int i = 0; i < seeds; ++i) {
    manual_seed(seed + static_cast<std::uint64_t>(i));
    ReferenceModel model(placement, layers);
    const ReferenceBatch batch;
    const auto loss = [&] { return cross_entropy(model(batch.inputs), batch.classes); };
    const Tensor before = loss();
    before.backward();
    // The theory is about the weights of the sublayers: not about gains, biases and the head.
    double squares = 0.0;
    TensorList weights;
    for (const nn::NamedParameter& one : model.encoder.named_parameters()) {
      if (one.kind != nn::ParameterKind::matrix) continue;
      weights.push_back(one.tensor);
      squares += std::pow(length(one.tensor.grad()), 2.0);
    }
    optim::SGD(weights, {.lr = 1e-4}).step();
    const NoGradGuard no_grad;
    const double change = std::abs(loss().item() - before.item());
    logs.squares += std::log(squares) / seeds;
    logs.change += std::log(std::max(change, 1e-7)) / seeds;
  }
  return {std::exp(logs.squares), std::exp(logs.change)};
}

}  // namespace

Result bounded_update(const Settings& settings) {
  using P = nn::NormPlacement;
  const std::vector<double> depths = {6, 12, 24, 48, 96};
  Chart gradients{.title = "Sum of squares of the gradients at the start",
                  .x_label = "layers",
                  .y_label = "Σ |∂L/∂θ|²",
                  .log_x = true,
                  .log_y = true};
  Chart changes = gradients;
  changes.title = "What one step of SGD does";
  changes.y_label = "|change of the loss|";
  std::vector<double> ratios;
  double deep_at_6 = 0.0;
  for (const P placement : {P::deep_norm, P::pre, P::post, P::scaled, P::sandwich}) {
    Series squares{std::string(nn::to_string(placement)), depths, {}}, change = squares;
    for (const double depth : depths) {
      const Step step = first_step(placement, static_cast<std::int64_t>(depth), settings.seed);
      squares.y.push_back(step.squares);
      change.y.push_back(step.change);
    }
    if (placement == P::deep_norm) deep_at_6 = squares.y.front();
    ratios.push_back(squares.y.back() / squares.y.front());
    gradients.series.push_back(squares);
    changes.series.push_back(change);
  }
  const auto constants = nn::deep_norm_constants(nn::StackRole::alone, 24);
  return {
      .claim =
          "DeepNorm bounds the first update by a constant, whatever the depth; post-norm's grows "
          "with it.",
      .source = "L4, R36; Wang et al. 2022 (DeepNet)",
      .setting =
          "6 … 96 layers of width 64, uniform attention, Xavier's initial values, one step of "
          "SGD with rate 1e-4 on the weights of the sublayers, geometric mean of 4 seeds",
      .rows = {{"deep_norm: Σ of 96 layers / of 6", between(0.4, 2.5), ratios[0]},
               {"post: the same, for 16 times the depth", at_least(5), ratios[2]},
               {"post: the same, as simulated with one seed", at_least(20), ratios[2],
                Tests::reference},
               {"pre: the same", at_least(2), ratios[1], Tests::reference},
               {"deep_norm: Σ at 6 layers, as simulated", within_factor(0.6, 3), deep_at_6,
                Tests::reference},
               {"α of 24 layers", near(2.632, 5e-4), constants.alpha, Tests::reference},
               {"β of 24 layers", near(0.2686, 5e-5), constants.beta, Tests::reference}},
      .finding =
          "The bound is one on plain gradient steps. Adam divides the size of the gradient "
          "out, so under Adam DeepNorm's first step still grows slowly with depth.",
      .charts = {gradients, changes}};
}

}  // namespace norm_lab
