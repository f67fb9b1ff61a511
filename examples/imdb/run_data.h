// The data of a run: read, split, tokenized, ready to be cut into batches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "imdb/batches.h"
#include "imdb/config.h"
#include "imdb/dataset.h"

namespace imdb {

/// The cut between training and development does not move with --seed: runs with several seeds are
/// compared on the same reviews.
inline constexpr std::uint64_t kSplitSeed = 0;

struct RunData {
  Dataset dataset;
  DevSplit split;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<TokenIds> train_tokens;  ///< of dataset.train
  std::vector<TokenIds> test_tokens;   ///< of dataset.test
  std::string name;                    ///< for people: the path, or "built-in sample (…)"

  BatchSource train_source(const BatchOptions& options) const;
  BatchSource dev_source(const BatchOptions& options) const;
  BatchSource test_source(const BatchOptions& options) const;
};

/// Reads what `config.data` names, or the built-in sample.
Dataset read_data(const std::string& data);

/// "built-in sample (1,000 + 1,000 reviews)" or the path.
std::string data_name(const std::string& data);

/// Reads, splits off the development set, applies `train_limit`, and tokenizes with `tokenizer`
/// (that of a checkpoint) or a new one learned from the training part. `say` gets a line about each
/// stage.
RunData prepare_data(const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
                     const std::function<void(const std::string&)>& say);

}  // namespace imdb
