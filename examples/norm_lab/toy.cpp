#include "norm_lab/toy.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/random.h"
#include "norma/nn/weight_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/index.h"
#include "norma/ops/loss.h"
#include "norma/optim/adamw.h"
#include "norma/optim/lr_scheduler.h"
#include "norma/optim/weight_decay_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace norm_lab {

using namespace norma;

namespace {

Tensor loss_of(ToyModel& model, const ToyBatch& batch) {
  return cross_entropy(model(batch.inputs).reshape({-1, ToyModel::kVocabulary}),
                       batch.targets.reshape({-1}));
}

}  // namespace

ToyModel::ToyModel(const nn::TransformerConfig& config)
    : tokens(kVocabulary, kWidth),
      positions(kLength, kWidth),
      encoder(config),
      head(kWidth, kVocabulary) {
  register_module("tokens", tokens);
  register_module("positions", positions);
  register_module("encoder", encoder);
  register_module("head", head);
}

Tensor ToyModel::forward(const Tensor& indices) {
  return head(encoder(tokens(indices) + positions.weight));
}

nn::TransformerConfig toy_config(std::int64_t layers, nn::NormPlacement placement,
                                 nn::NormKind norm) {
  return {.d_model = ToyModel::kWidth,
          .num_heads = 2,
          .d_ff = 2 * ToyModel::kWidth,
          .num_layers = layers,
          .norm = norm,
          .placement = placement,
          .dropout = 0.0};
}

ToyBatch toy_batch(std::int64_t samples, std::int64_t shift, const Device& device) {
  // Drawn on the CPU, so that a seed means the same sequences on each device.
  const Tensor inputs = randint(0, ToyModel::kVocabulary, {samples, ToyModel::kLength});
  const Tensor targets =
      cat({inputs.narrow(1, 0, shift), inputs.narrow(1, 0, ToyModel::kLength - shift)}, 1);
  return {inputs.to(device), targets.to(device)};
}

double toy_loss(ToyModel& model, std::int64_t shift, const Device& device) {
  const NoGradGuard no_grad;
  return loss_of(model, toy_batch(256, shift, device)).item();
}

double train_toy(ToyModel& model, const ToyTraining& training) {
  const bool sphere = model.encoder.config.placement == nn::NormPlacement::ngpt;
  if (sphere) nn::normalize_matrices_(model.encoder);
  optim::AdamW optimizer(optim::weight_decay_groups(model, 0.01), {.lr = training.lr});
  optim::LRScheduler scheduler(optimizer,
                               optim::constant_schedule({.warmup_steps = training.warmup}));
  const std::int64_t counted = std::max<std::int64_t>(1, training.steps / 10);
  double sum = 0.0;
  for (std::int64_t step = 0; step < training.steps; ++step) {
    optimizer.zero_grad();
    const Tensor loss =
        loss_of(model, toy_batch(training.samples, training.shift, training.device));
    const double value = loss.item();
    if (!(value < 100.0)) return std::numeric_limits<double>::quiet_NaN();
    if (step >= training.steps - counted) sum += value / static_cast<double>(counted);
    loss.backward();
    optimizer.step();
    scheduler.step();
    if (sphere) nn::normalize_matrices_(model.encoder);
  }
  return sum;
}

double train_toy(const nn::TransformerConfig& config, const ToyTraining& training) {
  manual_seed(training.seed);
  ToyModel model(config);
  model.to(training.device);
  return train_toy(model, training);
}

std::int64_t toy_steps(const Settings& settings, std::int64_t steps) {
  return settings.quick ? 3 : steps;
}

}  // namespace norm_lab
