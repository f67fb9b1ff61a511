// The honest linear rival: NB-SVM (Wang and Manning, "Baselines and Bigrams", ACL 2012).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "imdb/dataset.h"

namespace imdb {

struct BaselineOptions {
  int ngram = 2;     ///< uses n-grams of 1 to this many words; at most 3
  double alpha = 1;  ///< smoothing of the naive Bayes counts
  double dev_fraction = 0.1;
  std::uint64_t seed = 0;
  /// The grid from which the development set picks: the SVM's C, and the weight of the SVM against
  /// the plain naive Bayes direction (1: SVM alone).
  std::vector<double> costs = {0.003, 0.01, 0.03, 0.1, 0.3};
  std::vector<double> betas = {0.125, 0.25, 0.5, 0.75, 1};
};

struct BaselineResult {
  struct Prediction {
    std::int32_t review = 0;  ///< index into `Dataset::test`
    std::int32_t label = 0;
    std::int32_t predicted = 0;
    double score = 0;  ///< signed margin, positive for a positive review
  };
  struct Feature {
    std::string ngram;
    double weight = 0;
  };
  struct GridPoint {
    double cost = 0;
    double beta = 0;
    double dev_accuracy = 0;
  };

  double dev_accuracy = 0;   ///< of the chosen point, trained without the development set
  double test_accuracy = 0;  ///< of the final model, trained on all training reviews
  double cost = 0;
  double beta = 0;
  double train_seconds = 0;  ///< everything but reading the archive
  std::int64_t features = 0;
  bool dev_by_movie = false;
  std::vector<GridPoint> grid;
  std::vector<Feature> top_positive;  ///< the 25 largest weights, and the 25 smallest
  std::vector<Feature> top_negative;
  std::vector<Prediction> predictions;
};

/// Trains and tests the baseline:
///
/// 1. features: which n-grams a review contains (binarized);
/// 2. their log-count ratios r = log((p / |p|_1) / (q / |q|_1)) with p, q = alpha + the number of
///    positive, negative training reviews that contain the n-gram;
/// 3. a linear SVM on the features scaled by r, interpolated with naive Bayes:
///    w' = (1 - beta) mean|w| + beta w.
///
/// C and beta come from the development set; the test set is scored once, by a model trained on all
/// training reviews with these. Throws norma::ValueError for options out of range.
BaselineResult train_baseline(const Dataset& dataset, const BaselineOptions& options = {});

}  // namespace imdb
