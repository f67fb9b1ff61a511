// Padded batches of token ids: truncation, length buckets, a repeatable order, word dropout.
#pragma once

#include <cstdint>
#include <vector>

#include "imdb/tokenizer.h"

namespace imdb {

struct BatchOptions {
  std::int64_t batch_size = 64;
  std::int64_t max_length = 256;  ///< L: no row is longer, CLS included
  std::int64_t head = 64;  ///< of a longer review, its first `head` and last L - `head` tokens stay
  bool cls = false;        ///< put `Tokenizer::cls_id` in front of each review
  std::int64_t bigram_buckets =
      0;  ///< fill `Batch::bigrams` with this many buckets; 0: leave empty
};

/// One batch, row-major [size, length].
struct Batch {
  std::int64_t size = 0;
  std::int64_t length = 0;  ///< of the longest row, rounded up to a multiple of 8, at most L
  std::vector<std::int64_t> tokens;   ///< [size, length], `Tokenizer::pad_id` behind each review
  std::vector<std::int64_t> bigrams;  ///< [size, length] by `bigram_ids`, 0 behind; or empty
  std::vector<std::uint8_t> mask;     ///< [size, length], 1 where there is a token
  std::vector<std::int64_t> labels;   ///< [size]
  std::vector<std::int32_t> reviews;  ///< [size]: which review each row is
  std::int64_t real_tokens = 0;       ///< ones in `mask`
};

/// The reviews of each batch of one pass, and the key of that pass's word dropout.
struct EpochOrder {
  std::vector<std::vector<std::int32_t>> batches;
  std::uint64_t key = 0;
};

/// Keeps the first `head` and last `max_length - head` tokens of a longer list (Sun et al. 2019:
/// opinions gather at both ends of a review, mostly at the last). An empty list becomes one
/// `Tokenizer::unk_id`, so that no row of a batch is all padding. With `cls`, `cls_id` comes first
/// and counts.
TokenIds fit_length(const TokenIds& tokens, const BatchOptions& options);

/// Makes batches of a fixed set of tokenized reviews. Stateless: (seed, epoch, index) determine a
/// batch completely, so that training resumes exactly from these three numbers.
class BatchSource {
 public:
  /// Throws norma::ValueError for options out of range or if the lists differ in length.
  BatchSource(const std::vector<TokenIds>& tokens, std::vector<std::int64_t> labels,
              BatchOptions options);

  std::int64_t reviews() const { return static_cast<std::int64_t>(rows_.size()); }
  /// Batches in one pass: ceil(reviews / batch_size).
  std::int64_t batches() const;
  const BatchOptions& options() const { return options_; }
  /// Of the tokens and labels, in their order: tells sets of reviews apart.
  std::uint64_t hash() const;

  /// A training pass: every review once, shuffled; batches hold reviews of similar length. The
  /// shuffled reviews are sorted by length within pools of 50 batches, cut, and the batches
  /// shuffled again; only one batch may be smaller than the others.
  EpochOrder shuffled(std::uint64_t seed, std::int64_t epoch) const;
  /// A pass for evaluation: every review once, shortest first.
  EpochOrder sorted() const;

  /// Batch `index` of `order`. With `word_dropout` p each token but CLS becomes
  /// `Tokenizer::unk_id` with probability p, decided by (order.key, review, position); bigrams see
  /// the dropped tokens. Throws norma::IndexError or norma::ValueError.
  Batch batch(const EpochOrder& order, std::int64_t index, double word_dropout = 0) const;

 private:
  std::vector<std::vector<std::int32_t>> rows_;
  std::vector<std::int64_t> labels_;
  BatchOptions options_;
};

/// One batch of texts to predict: labels are -1.
Batch make_batch(const std::vector<TokenIds>& tokens, const BatchOptions& options);

/// The tokens and labels of `reviews[i]` for i in `indices`, from `encoded` (one entry a review).
BatchSource make_source(const std::vector<TokenIds>& encoded, const std::vector<Review>& reviews,
                        const std::vector<std::int32_t>& indices, const BatchOptions& options);
/// All `reviews`.
BatchSource make_source(const std::vector<TokenIds>& encoded, const std::vector<Review>& reviews,
                        const BatchOptions& options);

}  // namespace imdb
