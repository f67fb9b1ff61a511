// Measuring a model: loss, accuracy, confusion, and each review's logit.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "imdb/batches.h"
#include "imdb/report.h"
#include "norma/nn/classifier.h"

namespace imdb {

struct Evaluation {
  double loss = 0;      ///< mean cross-entropy, nats
  double accuracy = 0;  ///< fraction
  ConfusionMatrix confusion;
  // For each review of the source, in its own order:
  std::vector<double> logits;  ///< log p(positive) - log p(negative)
  std::vector<std::int64_t> labels;
};

/// The probability of "positive" for each row of a batch, `logit_shift` added to its logit.
std::vector<float> positive_probabilities(norma::nn::TransformerClassifier& model,
                                          const Batch& batch, const norma::Device& device,
                                          double logit_shift = 0);

/// Called after each batch; false stops.
using OnBatch = std::function<bool(std::int64_t done, std::int64_t total)>;

/// Runs the model in eval mode and without a tape over all reviews; restores its mode. Nothing if
/// `on_batch` stopped it before the end.
std::optional<Evaluation> evaluate(norma::nn::TransformerClassifier& model,
                                   const BatchSource& source, const norma::Device& device,
                                   const OnBatch& on_batch = {});

/// The same model with `shift` added to every logit.
Evaluation shifted(const Evaluation& evaluation, double shift);

/// The shift of the logits that has the least loss, with a normal prior of standard deviation 1 (a
/// handful of reviews, or reviews of one class, must not send it to infinity).
///
/// A model that learned from texts with dropped words may lean to one side on whole texts: two of
/// seven runs did by half a logit, which cost half a point of accuracy (benchmarks/results). This
/// one number, fitted on the development set, takes the lean away. It is the bias term of Platt
/// scaling (Guo et al., On Calibration of Modern Neural Networks, arXiv 1706.04599).
double fit_logit_shift(const Evaluation& evaluation);

/// The `count` reviews on which the model was surest and wrong, surest first.
std::vector<Mistake> confident_mistakes(const Evaluation& evaluation,
                                        const std::vector<Review>& reviews, std::size_t count);

}  // namespace imdb
