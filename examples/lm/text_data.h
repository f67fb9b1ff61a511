// From a file, an archive or the built-in sample to training and development tokens.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lm/config.h"
#include "lm/tokenizer.h"
#include "norma/core/tensor.h"

namespace lm {

/// Texts in two sides. A text ends where its writer ended it: one review, or one file.
struct Texts {
  std::string name;
  std::vector<std::string> train;
  std::vector<std::string> dev;
};

/// Reads `data`: a text file (its end is the development side), an archive or folder with the IMDb
/// reviews (its training reviews, development by movie; the test reviews stay out), or nothing: the
/// training reviews of imdb's built-in sample.
///
/// `unsup`, an archive, adds its reviews without a label to the training side, but for those that
/// are labelled reviews word for word: some are test reviews.
///
/// Throws norma::FileError, or norma::ValueError for a file too short to divide, or `unsup` to go
/// with a text file.
Texts read_texts(const std::string& data, const std::string& unsup, double dev_fraction);
/// The same undivided and without `unsup`.
std::vector<std::string> read_whole(const std::string& data);

/// Rows of `context` tokens of one stream, each beginning with the last token of the row before, so
/// that every token but the first is predicted once. What does not fill a row is left out.
class Rows {
 public:
  Rows(TokenIds tokens, std::int64_t context, std::int64_t batch_size);

  std::int64_t rows() const;
  std::int64_t batches() const { return (rows() + batch_size_ - 1) / batch_size_; }
  const TokenIds& tokens() const { return tokens_; }
  /// Which rows batch `index` of `epoch` takes: all of them once in an order that (seed, epoch)
  /// determines.
  std::vector<std::int64_t> shuffled(std::uint64_t seed, std::int64_t epoch) const;
  /// Batch `index` of rows in this order, [at most batch_size, context] int64.
  norma::Tensor batch(const std::vector<std::int64_t>& order, std::int64_t index) const;
  /// Rows in their own order.
  std::vector<std::int64_t> in_order() const;

 private:
  TokenIds tokens_;
  std::int64_t context_, batch_size_;
};

/// What a run is trained and measured on.
struct TrainData {
  std::string name;
  std::shared_ptr<const Tokenizer> tokenizer;
  Rows train, dev;
  double dev_bytes = 0;     ///< length of the development text
  double unigram_loss = 0;  ///< of the development tokens by their frequency in training, in nats
  std::uint64_t hash = 0;   ///< of the training tokens
};

/// Reads, learns a vocabulary (or takes `tokenizer`) and encodes. `say` gets a line a step.
TrainData prepare_data(const Config& config, std::shared_ptr<const Tokenizer> tokenizer,
                       const std::function<void(const std::string&)>& say);

}  // namespace lm
