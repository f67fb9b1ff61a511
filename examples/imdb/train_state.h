// Where a training run stands: everything of a checkpoint that is not a tensor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "imdb/metrics.h"

namespace imdb {

struct TrainState {
  std::int64_t step = 0;     ///< optimizer steps done
  std::int64_t epoch = 0;    ///< epochs finished
  std::int64_t batch = 0;    ///< batches of the current epoch done: the data cursor
  std::int64_t tokens = 0;   ///< trained on, padding not counted
  double train_seconds = 0;  ///< of all sessions
  double total_seconds = 0;  ///< the same with reading, vocabulary and whatever else they did
  double epoch_seconds = 0;  ///< of the current epoch, all sessions
  double loss_sum = 0;       ///< over the reviews of the current epoch
  std::int64_t correct = 0;  ///< of them
  std::int64_t seen = 0;
  /// With fit_shift: fitted after the last finished epoch. A checkpoint inside an epoch has newer
  /// weights with the shift of the epoch before, one inside the first epoch none.
  double logit_shift = 0;
  std::uint64_t rng_seed = 0;  ///< the device's random stream
  std::uint64_t rng_offset = 0;
  std::int64_t vocabulary = 0;       ///< rows of the token embedding
  std::uint64_t tokenizer_hash = 0;  ///< of tokenizer.bin
  std::int64_t train_reviews = 0;
  std::uint64_t data_hash = 0;  ///< of the training tokens and labels
  std::int64_t threads = 0;     ///< results repeat bit for bit with the same number only
  std::string data_name;        ///< what was read
  std::vector<StepRecord> steps;
  std::vector<EpochRecord> epochs;
};

/// JSON text. Doubles are written so that they read back exactly.
std::string to_json(const TrainState& state);

/// Inverse of `to_json`. Throws norma::FileError naming `file` when it is not the state of a run,
/// or of a later version of this program.
TrainState train_state_from_json(std::string_view text, const std::string& file);

}  // namespace imdb
