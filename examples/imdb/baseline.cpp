#include "imdb/baseline.h"

#include <norma/core/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "imdb/linear_svm.h"
#include "imdb/ngram_features.h"
#include "imdb/stopwatch.h"

namespace imdb {

using norma::check;

namespace {

constexpr std::size_t kTopFeatures = 25;

void check_options(const BaselineOptions& o) {
  check(o.alpha > 0, "baseline", "alpha must be positive; got {}", o.alpha);
  check(o.dev_fraction > 0, "baseline",
        "dev_fraction must be positive, as the development set chooses C and beta; got {}",
        o.dev_fraction);
  check(!o.costs.empty() && !o.betas.empty(), "baseline", "the grid must have points; got none");
  for (double cost : o.costs) check(cost > 0, "baseline", "C must be positive; got {}", cost);
  for (double beta : o.betas)
    check(beta >= 0 && beta <= 1, "baseline", "beta must be in [0, 1]; got {}", beta);
}

// r of each feature from the rows in `subset`.
std::vector<float> log_count_ratios(const FeatureRows& rows, const std::vector<std::int8_t>& labels,
                                    const std::vector<std::int32_t>& subset, std::int64_t features,
                                    double alpha) {
  std::vector<std::int32_t> positive(static_cast<std::size_t>(features));
  std::vector<std::int32_t> negative(static_cast<std::size_t>(features));
  for (std::int32_t row : subset) {
    auto& counts = labels[static_cast<std::size_t>(row)] ? positive : negative;
    for (const std::int32_t* id = rows.begin(row); id != rows.end(row); ++id)
      ++counts[static_cast<std::size_t>(*id)];
  }
  const auto total = [&](const std::vector<std::int32_t>& counts) {
    return alpha * static_cast<double>(features) +
           static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  };
  const double shift = std::log(total(negative)) - std::log(total(positive));
  std::vector<float> ratios(static_cast<std::size_t>(features));
  for (std::size_t j = 0; j < ratios.size(); ++j)
    // An n-gram that none of these rows has (it came from the others) must stay without effect.
    ratios[j] =
        positive[j] + negative[j] == 0
            ? 0.0f
            : static_cast<float>(std::log((positive[j] + alpha) / (negative[j] + alpha)) + shift);
  return ratios;
}

// mean|w| of the SVM's own weights, w_j = weights_j / r_j.
double mean_magnitude(const LinearModel& model, const std::vector<float>& ratios) {
  double sum = 0;
  std::int64_t count = 0;
  for (std::size_t j = 0; j < ratios.size(); ++j)
    if (ratios[j] != 0) {
      sum += std::abs(static_cast<double>(model.weights[j]) / static_cast<double>(ratios[j]));
      ++count;
    }
  return count ? sum / static_cast<double>(count) : 0;
}

LinearModel interpolate(const LinearModel& svm, const std::vector<float>& ratios, double beta) {
  const auto b = static_cast<float>(beta);
  const auto naive_bayes = static_cast<float>((1 - beta) * mean_magnitude(svm, ratios));
  LinearModel model;
  model.bias = b * svm.bias;
  model.weights.resize(svm.weights.size());
  for (std::size_t j = 0; j < ratios.size(); ++j)
    model.weights[j] = naive_bayes * ratios[j] + b * svm.weights[j];
  return model;
}

double accuracy(const LinearModel& model, const FeatureRows& rows,
                const std::vector<std::int8_t>& labels, const std::vector<std::int32_t>& subset) {
  std::int64_t right = 0;
  for (std::int32_t row : subset)
    right += (model.score(rows, row) > 0) == (labels[static_cast<std::size_t>(row)] == 1);
  return static_cast<double>(right) / static_cast<double>(subset.size());
}

std::vector<std::int8_t> labels_of(const std::vector<Review>& reviews) {
  std::vector<std::int8_t> labels;
  for (const Review& review : reviews) labels.push_back(static_cast<std::int8_t>(review.label));
  return labels;
}

std::vector<BaselineResult::Feature> top_features(const LinearModel& model, bool positive,
                                                  const NgramFeatures& features,
                                                  const Dataset& dataset) {
  std::vector<std::int32_t> order(model.weights.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kept = std::min(kTopFeatures, order.size());
  const float sign = positive ? -1.0f : 1.0f;
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    [&](std::int32_t a, std::int32_t b) {
                      return sign * model.weights[static_cast<std::size_t>(a)] <
                             sign * model.weights[static_cast<std::size_t>(b)];
                    });
  std::vector<BaselineResult::Feature> top;
  for (std::size_t i = 0; i < kept; ++i)
    top.push_back({features.name(order[i], dataset.train, dataset.words),
                   static_cast<double>(model.weights[static_cast<std::size_t>(order[i])])});
  return top;
}

// Fills in the grid; the best point wins, the first among equals.
void choose(BaselineResult& result, const FeatureRows& rows, const std::vector<std::int8_t>& labels,
            const DevSplit& split, std::int64_t features, const BaselineOptions& options) {
  const std::vector<float> ratios =
      log_count_ratios(rows, labels, split.train, features, options.alpha);
  const std::size_t betas = options.betas.size();
  result.grid.resize(options.costs.size() * betas);
  const auto costs = static_cast<std::int64_t>(options.costs.size());
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t c = 0; c < costs; ++c) {
    // From the largest C, as it takes the most passes.
    const auto at = static_cast<std::size_t>(costs - 1 - c);
    SvmOptions svm_options;
    svm_options.cost = options.costs[at];
    svm_options.seed = options.seed;
    const LinearModel svm = train_svm(rows, labels, split.train, ratios, svm_options);
    for (std::size_t b = 0; b < betas; ++b)
      result.grid[at * betas + b] = {
          options.costs[at], options.betas[b],
          accuracy(interpolate(svm, ratios, options.betas[b]), rows, labels, split.dev)};
  }
  const auto best = std::max_element(
      result.grid.begin(), result.grid.end(),
      [](const auto& a, const auto& b) { return a.dev_accuracy < b.dev_accuracy; });
  result.cost = best->cost;
  result.beta = best->beta;
  result.dev_accuracy = best->dev_accuracy;
}

}  // namespace

BaselineResult train_baseline(const Dataset& dataset, const BaselineOptions& options) {
  check_options(options);
  const Stopwatch watch;
  BaselineResult result;
  const DevSplit split = split_dev(dataset.train, options.dev_fraction, options.seed);
  result.dev_by_movie = split.by_movie;

  NgramFeatures features(options.ngram);
  const FeatureRows train = features.learn(dataset.train);
  const std::vector<std::int8_t> train_labels = labels_of(dataset.train);
  result.features = features.size();
  choose(result, train, train_labels, split, features.size(), options);

  std::vector<std::int32_t> all(dataset.train.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<float> ratios =
      log_count_ratios(train, train_labels, all, features.size(), options.alpha);
  SvmOptions svm_options;
  svm_options.cost = result.cost;
  svm_options.seed = options.seed;
  const LinearModel model =
      interpolate(train_svm(train, train_labels, all, ratios, svm_options), ratios, result.beta);

  const FeatureRows test = features.look_up(dataset.test);
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < test.size(); ++i) {
    const double score = model.score(test, i);
    const std::int32_t label = dataset.test[static_cast<std::size_t>(i)].label;
    const std::int32_t predicted = score > 0;
    right += predicted == label;
    result.predictions.push_back({static_cast<std::int32_t>(i), label, predicted, score});
  }
  result.test_accuracy = static_cast<double>(right) / static_cast<double>(test.size());
  result.top_positive = top_features(model, true, features, dataset);
  result.top_negative = top_features(model, false, features, dataset);
  result.train_seconds = watch.seconds();
  return result;
}

}  // namespace imdb
