// A linear support vector machine over weighted binary features.
#pragma once

#include <cstdint>
#include <vector>

#include "imdb/ngram_features.h"

namespace imdb {

/// score(row) = bias + sum of weights[j] over the features j of the row. `weights` already contain
/// the features' scales.
struct LinearModel {
  std::vector<float> weights;
  float bias = 0;

  double score(const FeatureRows& rows, std::int64_t row) const;
};

struct SvmOptions {
  double cost = 1;      ///< C
  int max_passes = 30;  ///< over the data
  double tolerance =
      0.1;  ///< stop when the projected gradients of a pass spread less (liblinear's)
  std::uint64_t seed = 0;  ///< order of the coordinates
};

/// L2-regularized, squared-hinge SVM by dual coordinate descent (Hsieh et al., ICML 2008;
/// liblinear's solver 1):
///
///     min_w  1/2 |w|^2 + C sum_i max(0, 1 - y_i w.x_i)^2,   x_ij = scales[j] if j is in row i
///
/// with a constant feature 1 as (regularized) bias. `subset` names the rows to learn from, `labels`
/// (0 or 1) has one entry a row. Repeats bit for bit. The weights returned are w_j scales[j].
LinearModel train_svm(const FeatureRows& rows, const std::vector<std::int8_t>& labels,
                      const std::vector<std::int32_t>& subset, const std::vector<float>& scales,
                      const SvmOptions& options);

}  // namespace imdb
