#include "imdb/evaluate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "imdb/model.h"
#include "norma/core/grad_mode.h"

namespace imdb {
namespace {

namespace nn = norma::nn;

// Logits of two classes: log p(positive) and log p(negative) depend on their difference alone.
std::vector<double> logit_differences(nn::TransformerClassifier& model, const Batch& batch,
                                      const norma::Device& device) {
  const norma::NoGradGuard no_grad;
  const BatchTensors tensors = to_tensors(batch, device);
  const auto logits =
      model(tensors.tokens, tensors.padding_mask, tensors.bigrams).to_vector<double>();
  std::vector<double> differences(logits.size() / 2);
  for (std::size_t i = 0; i < differences.size(); ++i)
    differences[i] = logits[2 * i + 1] - logits[2 * i];
  return differences;
}

double sigmoid(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

// -log sigmoid(x), exact for large |x|.
double log_loss(double x) {
  return x >= 0 ? std::log1p(std::exp(-x)) : -x + std::log1p(std::exp(x));
}

class EvalMode {
 public:
  explicit EvalMode(norma::nn::Module& module) : module_(module), former_(module.is_training()) {
    module_.eval();
  }
  ~EvalMode() { module_.train(former_); }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  norma::nn::Module& module_;
  bool former_;
};

}  // namespace

std::vector<float> positive_probabilities(nn::TransformerClassifier& model, const Batch& batch,
                                          const norma::Device& device, double logit_shift) {
  const EvalMode mode(model);
  std::vector<float> probabilities;
  for (const double difference : logit_differences(model, batch, device))
    probabilities.push_back(static_cast<float>(sigmoid(difference + logit_shift)));
  return probabilities;
}

std::optional<Evaluation> evaluate(nn::TransformerClassifier& model, const BatchSource& source,
                                   const norma::Device& device, const OnBatch& on_batch) {
  const EvalMode mode(model);
  Evaluation result;
  result.logits.resize(static_cast<std::size_t>(source.reviews()));
  result.labels.resize(result.logits.size());
  const EpochOrder order = source.sorted();
  const std::int64_t count = source.batches();
  for (std::int64_t i = 0; i < count; ++i) {
    const Batch batch = source.batch(order, i);
    const auto differences = logit_differences(model, batch, device);
    for (std::size_t row = 0; row < differences.size(); ++row) {
      const auto review = static_cast<std::size_t>(batch.reviews[row]);
      result.logits[review] = differences[row];
      result.labels[review] = batch.labels[row];
    }
    if (on_batch && !on_batch(i + 1, count) && i + 1 < count) return std::nullopt;
  }
  return shifted(result, 0);
}

Evaluation shifted(const Evaluation& evaluation, double shift) {
  Evaluation result;
  result.logits = evaluation.logits;
  result.labels = evaluation.labels;
  double loss = 0;
  std::int64_t correct = 0;
  for (std::size_t i = 0; i < result.logits.size(); ++i) {
    const double logit = result.logits[i] += shift;
    const auto label = static_cast<int>(result.labels[i]);
    const int predicted = logit >= 0 ? 1 : 0;
    loss += log_loss(label == 1 ? logit : -logit);
    correct += predicted == label;
    ++result.confusion.counts[label][predicted];
  }
  const auto total = static_cast<double>(std::max<std::size_t>(1, result.logits.size()));
  result.loss = loss / total;
  result.accuracy = static_cast<double>(correct) / total;
  return result;
}

double fit_logit_shift(const Evaluation& evaluation) {
  // Newton's method. The objective is strictly convex, and its second derivative at least 1, the
  // prior's; steps of at most 1 keep the first ones from overshooting.
  double shift = 0;
  for (int iteration = 0; iteration < 100; ++iteration) {
    double slope = shift;
    double curvature = 1;
    for (std::size_t i = 0; i < evaluation.logits.size(); ++i) {
      const double p = sigmoid(evaluation.logits[i] + shift);
      slope += p - static_cast<double>(evaluation.labels[i]);
      curvature += p * (1 - p);
    }
    const double step = std::clamp(slope / curvature, -1.0, 1.0);
    shift -= step;
    if (std::abs(step) < 1e-10) break;
  }
  return shift;
}

std::vector<Mistake> confident_mistakes(const Evaluation& evaluation,
                                        const std::vector<Review>& reviews, std::size_t count) {
  const auto surety = [&](std::size_t i) { return std::abs(evaluation.logits[i]); };
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < evaluation.logits.size(); ++i)
    if ((evaluation.logits[i] >= 0) != (reviews[i].label == 1)) wrong.push_back(i);
  std::stable_sort(wrong.begin(), wrong.end(),
                   [&](std::size_t a, std::size_t b) { return surety(a) > surety(b); });
  wrong.resize(std::min(wrong.size(), count));
  std::vector<Mistake> mistakes;
  for (const std::size_t i : wrong)
    mistakes.push_back({"test/" + reviews[i].name(), reviews[i].text, reviews[i].label,
                        static_cast<float>(sigmoid(evaluation.logits[i]))});
  return mistakes;
}

}  // namespace imdb
