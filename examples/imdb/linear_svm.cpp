#include "imdb/linear_svm.h"

#include <algorithm>
#include <limits>

#include "imdb/random.h"

namespace imdb {

double LinearModel::score(const FeatureRows& rows, std::int64_t row) const {
  double sum = bias;
  for (const std::int32_t* id = rows.begin(row); id != rows.end(row); ++id)
    sum += static_cast<double>(weights[static_cast<std::size_t>(*id)]);
  return sum;
}

LinearModel train_svm(const FeatureRows& rows, const std::vector<std::int8_t>& labels,
                      const std::vector<std::int32_t>& subset, const std::vector<float>& scales,
                      const SvmOptions& options) {
  // Kept per feature: u_j = w_j s_j, which a row's score sums directly, and s_j^2, by which an
  // update moves it. Side by side, so that a feature costs one cache miss.
  struct Cell {
    float weight;
    float square;
  };
  std::vector<Cell> cells(scales.size());
  for (std::size_t j = 0; j < scales.size(); ++j) cells[j] = {0, scales[j] * scales[j]};
  double bias = 0;

  const double diagonal = 0.5 / options.cost;
  std::vector<double> alpha(subset.size(), 0);
  std::vector<double> curvature(subset.size());
  for (std::size_t k = 0; k < subset.size(); ++k) {
    double sum = 1 + diagonal;
    for (const std::int32_t* id = rows.begin(subset[k]); id != rows.end(subset[k]); ++id)
      sum += static_cast<double>(cells[static_cast<std::size_t>(*id)].square);
    curvature[k] = sum;
  }

  std::vector<std::int32_t> order(subset.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = static_cast<std::int32_t>(k);
  for (int pass = 0; pass < options.max_passes; ++pass) {
    shuffle(order, mix(options.seed, pass, 0x73766D));
    double highest = -std::numeric_limits<double>::infinity();
    double lowest = std::numeric_limits<double>::infinity();
    for (std::int32_t at : order) {
      const auto k = static_cast<std::size_t>(at);
      const std::int32_t row = subset[k];
      const double y = labels[static_cast<std::size_t>(row)] ? 1 : -1;
      double score = bias;
      for (const std::int32_t* id = rows.begin(row); id != rows.end(row); ++id)
        score += static_cast<double>(cells[static_cast<std::size_t>(*id)].weight);
      const double gradient = y * score - 1 + diagonal * alpha[k];
      const double projected = alpha[k] == 0 ? std::min(gradient, 0.0) : gradient;
      highest = std::max(highest, projected);
      lowest = std::min(lowest, projected);
      if (projected > -1e-12 && projected < 1e-12) continue;
      const double before = alpha[k];
      alpha[k] = std::max(0.0, before - gradient / curvature[k]);
      const double step = (alpha[k] - before) * y;
      const auto step_f = static_cast<float>(step);
      for (const std::int32_t* id = rows.begin(row); id != rows.end(row); ++id) {
        Cell& cell = cells[static_cast<std::size_t>(*id)];
        cell.weight += step_f * cell.square;
      }
      bias += step;
    }
    if (highest - lowest < options.tolerance) break;
  }

  LinearModel model;
  model.weights.resize(cells.size());
  for (std::size_t j = 0; j < cells.size(); ++j) model.weights[j] = cells[j].weight;
  model.bias = static_cast<float>(bias);
  return model;
}

}  // namespace imdb
