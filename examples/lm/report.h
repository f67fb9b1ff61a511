// metrics.json and report.html of a run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "imdb/train_state.h"
#include "lm/config.h"

namespace lm {

struct Report {
  Config config;
  imdb::TrainState state;
  std::int64_t parameters = 0;
  double unigram_loss = 0;
  double bits_per_byte = 0;  ///< of the development text, after the last epoch
  double tokens_per_second = 0;
  double total_seconds = 0;
  std::string sample;  ///< what the model writes
  std::vector<std::pair<std::string, std::string>> facts;
};

/// What a loss in nats for each of `tokens` tokens means for each of `bytes` bytes, in bits: does
/// not depend on the vocabulary.
double bits_per_byte(double loss, std::size_t tokens, double bytes);

std::string metrics_json(const Report& report);
/// One page with nothing to load from anywhere. All texts are escaped.
std::string render_report(const Report& report);

}  // namespace lm
