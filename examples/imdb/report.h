// report.html: one file that shows a whole run, with nothing to load from anywhere.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "imdb/config.h"
#include "imdb/metrics.h"

namespace imdb {

/// A test review that the model got wrong.
struct Mistake {
  std::string id;  ///< "test/pos/1234_10.txt"
  std::string text;
  int label = 0;           ///< 0 negative, 1 positive
  double probability = 0;  ///< the model's probability of "positive"
};

/// counts[truth][prediction] on the test set; 0 negative, 1 positive.
struct ConfusionMatrix {
  std::int64_t counts[2][2] = {{0, 0}, {0, 0}};
  std::int64_t total() const { return counts[0][0] + counts[0][1] + counts[1][0] + counts[1][1]; }
};

/// A linear model on the same data, for comparison.
struct BaselineSummary {
  bool known = false;
  double test_accuracy = 0;
  double seconds = 0;
};

struct ReportData {
  TrainConfig config;
  Metrics metrics;
  std::vector<StepRecord> steps;
  ConfusionMatrix confusion;
  std::vector<Mistake> mistakes;  ///< most confident first
  BaselineSummary baseline;
  std::vector<std::pair<std::string, std::string>> facts;  ///< machine, program, time
};

/// The page. All texts are escaped; curves are inline SVG; colours follow the reader's light or
/// dark setting.
std::string render_report(const ReportData& data);

/// `<`, `>`, `&`, quotes as entities; control characters and invalid UTF-8 as U+FFFD.
std::string escape_html(std::string_view text);

}  // namespace imdb
