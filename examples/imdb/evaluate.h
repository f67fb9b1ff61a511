// Measuring a model: loss, accuracy, confusion, and each review's probability.
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
  std::vector<float>
      probabilities;  ///< of "positive", for each review of the source in its own order
};

/// The probability of "positive" for each row of a batch. The model must be in eval mode.
std::vector<float> positive_probabilities(norma::nn::TransformerClassifier& model,
                                          const Batch& batch, const norma::Device& device);

/// Called after each batch; false stops.
using OnBatch = std::function<bool(std::int64_t done, std::int64_t total)>;

/// Runs the model in eval mode and without a tape over all reviews; restores its mode. Nothing if
/// `on_batch` stopped it before the end.
std::optional<Evaluation> evaluate(norma::nn::TransformerClassifier& model,
                                   const BatchSource& source, const norma::Device& device,
                                   const OnBatch& on_batch = {});

/// The `count` reviews on which the model was surest and wrong, surest first.
std::vector<Mistake> confident_mistakes(const Evaluation& evaluation,
                                        const std::vector<Review>& reviews, std::size_t count);

}  // namespace imdb
