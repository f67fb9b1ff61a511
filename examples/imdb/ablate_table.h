// The results of `imdb ablate`, as Markdown and as JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "imdb/ablate_grid.h"
#include "imdb/ablate_result.h"

namespace imdb {

/// A mean with the half width of its 95 % confidence interval.
struct Estimate {
  double mean = 0;
  double half_width = 0;
  std::size_t count = 0;  ///< values; 0: no estimate
};

/// Of the mean of `values`, by Student's t; of one value the half width is 0.
Estimate mean_of(const std::vector<double>& values);
/// Of accuracies of several runs on the same `reviews`: Student's t over the runs and the binomial
/// error of the reviews, added in quadrature.
Estimate accuracy_of(const std::vector<double>& accuracies, std::int64_t reviews);

struct AblationReport {
  std::vector<std::pair<std::string, std::string>> facts;  ///< setting and machine
  AblationGrid grid;
  std::vector<AblationResult> results;  ///< of the runs that are over, in any order
};

/// The setting, a table with a row for each group beside the article's figure, one with a row for
/// each run.
std::string to_markdown(const AblationReport& report);
/// The same for programs. Accuracies are fractions; what was not measured is null.
std::string to_json(const AblationReport& report);

}  // namespace imdb
