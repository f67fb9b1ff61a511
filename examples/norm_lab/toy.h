// A task and a model small enough to train hundreds of times: say the token that stood one place
// before. It needs attention and positions, and a model that gets it has a loss near 0; one that
// learns nothing stays at log(16) = 2.77.
#pragma once

#include "norm_lab/experiment.h"
#include "norma/nn/embedding.h"
#include "norma/nn/linear.h"
#include "norma/nn/transformer.h"

#include <functional>
#include <vector>

namespace norm_lab {

struct ToyModel : norma::nn::Layer<ToyModel> {
  static constexpr std::int64_t kVocabulary = 16, kLength = 8, kWidth = 32;

  norma::nn::Embedding tokens, positions;
  norma::nn::TransformerEncoder encoder;
  norma::nn::Linear head;

  explicit ToyModel(const norma::nn::TransformerConfig& config);
  norma::Tensor forward(const norma::Tensor& indices);
};

/// d_model 32, two heads, ff 64, no dropout.
norma::nn::TransformerConfig toy_config(std::int64_t layers, norma::nn::NormPlacement placement,
                                        norma::nn::NormKind norm = norma::nn::NormKind::layer_norm);

struct ToyBatch {
  norma::Tensor inputs, targets;
};
/// Random sequences; the target of the first place is its own token. With shift 0 of all places.
ToyBatch toy_batch(std::int64_t samples, std::int64_t shift, const norma::Device& device);
/// Mean loss of the model on 256 fresh sequences, off the tape.
double toy_loss(ToyModel& model, std::int64_t shift, const norma::Device& device);

struct ToyTraining {
  double lr = 1e-3;
  std::int64_t steps = 150;
  std::int64_t warmup = 0;
  std::int64_t samples = 32;  ///< of a batch
  std::int64_t shift = 1;
  std::uint64_t seed = 1;
  norma::Device device = norma::cpu;
};

/// Trains with AdamW at a constant rate after the warm-up. Returns the mean loss of the last tenth
/// of the steps; NaN where a loss was not finite or past 100, which ends the training.
double train_toy(ToyModel& model, const ToyTraining& training);
/// Makes the model from the seed and trains it.
double train_toy(const norma::nn::TransformerConfig& config, const ToyTraining& training);

/// Steps of a training under --quick.
std::int64_t toy_steps(const Settings& settings, std::int64_t steps);

}  // namespace norm_lab
