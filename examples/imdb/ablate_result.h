// What one run of `imdb ablate` reached.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "imdb/train_state.h"

namespace imdb {

/// An epoch and, where it was measured, the test accuracy of its weights: after each epoch that was
/// the best so far on the development set, and after the last.
struct AblationEpoch {
  EpochRecord record;
  std::optional<double> test_accuracy;
};

struct AblationResult {
  std::string group, norm, placement, init;
  std::int64_t seed = 0;
  /// Empty: it trained. Else why not, by the first that holds: a loss or gradient was not finite;
  /// the training loss of the last 200 steps is above 1 (guessing has 0.69); the development
  /// accuracy at the end is below 55 %.
  std::string failure;
  bool finite = true;  ///< no loss or gradient was broken, so that it reached the last epoch
  std::int64_t steps = 0;
  double seconds = 0;          ///< of all sessions, without the test
  double wobble = 0;           ///< standard deviation of the training loss over the last 200 steps
  double grad_norm_first = 0;  ///< of all gradients together: of the first step,
  double grad_norm_median = 0;
  double grad_norm_max = 0;  ///< and the largest that was finite
  std::int64_t parameters = 0;
  std::int64_t dev_reviews = 0;
  std::int64_t test_reviews = 0;
  std::uint64_t data_hash = 0;  ///< of the training reviews
  std::vector<AblationEpoch> epochs;

  bool trained() const { return failure.empty(); }
  /// The epoch with the best development accuracy, the first of equals; null without epochs.
  const AblationEpoch* best() const;
  const AblationEpoch* last() const { return epochs.empty() ? nullptr : &epochs.back(); }
};

/// Fills what follows from the course of the training and from `finite`.
void summarize(AblationResult& result, const TrainState& state);

/// JSON text.
std::string to_json(const AblationResult& result);
/// Inverse of to_json; throws norma::FileError.
AblationResult read_ablation_result(const std::filesystem::path& file);

}  // namespace imdb
