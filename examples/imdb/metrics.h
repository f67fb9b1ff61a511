// metrics.json: what a run was and what it reached, for programs to read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace imdb {

/// What one optimizer step measured (of the training batch, before the update).
struct StepRecord {
  std::int64_t step = 0;  ///< 1 is the first
  double loss = 0;        ///< cross-entropy with label smoothing, nats
  double accuracy = 0;    ///< fraction of the batch
  double lr = 0;
  double grad_norm = 0;  ///< of all gradients together, before clipping
};

/// What one epoch reached.
struct EpochRecord {
  std::int64_t epoch = 0;  ///< 1 is the first
  std::int64_t step = 0;   ///< steps done at its end
  double train_loss = 0;   ///< mean over its steps
  double train_accuracy = 0;
  double dev_loss = 0;  ///< cross-entropy without smoothing; it and the accuracy with logit_shift
  double dev_accuracy = 0;
  double seconds = 0;  ///< training and development evaluation
};

/// The content of metrics.json. Accuracies are fractions.
struct Metrics {
  std::string preset;
  std::string data;  ///< path, or "built-in sample"
  std::int64_t seed = 0;
  std::string device;
  std::int64_t threads = 0;
  std::int64_t bigram_buckets = 0;
  /// After the last epoch. With `fit_shift` a little optimistic: one number, logit_shift, was
  /// fitted on the reviews that it is measured on.
  double dev_accuracy = 0;
  double logit_shift = 0;    ///< added to all logits, fitted on the development set
  double test_accuracy = 0;  ///< of the final weights; measured once
  double test_loss = 0;
  double train_seconds = 0;  ///< steps and development evaluations, all sessions of a resumed run
  double total_seconds = 0;  ///< reading, vocabulary, training, test and reports, all sessions
  double tokens_per_second = 0;  ///< training tokens, padding not counted
  std::int64_t peak_memory_bytes = 0;
  std::int64_t parameters = 0;
  std::int64_t train_reviews = 0;
  std::int64_t dev_reviews = 0;
  bool dev_by_movie = true;  ///< no movie of the development set occurs in training
  std::int64_t test_reviews = 0;
  std::int64_t vocabulary = 0;
  std::int64_t steps = 0;
  std::vector<EpochRecord> epochs;
};

/// The JSON text, with the version and git revision of this program.
std::string to_json(const Metrics& metrics);

/// Largest resident memory of this process so far.
std::int64_t peak_memory_bytes();

/// The project's version ("0.1.0").
const char* version();

/// The git revision this program was built from ("b574312", with "-dirty" where files differed), or
/// "unknown".
const char* git_revision();

/// "AMD EPYC 7543, 2 threads"-like name of the processor; "unknown processor" where there is none.
std::string processor_name();

/// Processors this process may use.
int available_processors();

}  // namespace imdb
