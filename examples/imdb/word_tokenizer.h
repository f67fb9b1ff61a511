// The default tokenizer: lower-cased words and punctuation marks by frequency.
#pragma once

#include <string>
#include <vector>

#include "imdb/tokenizer.h"

namespace imdb {

/// Tokens of `WordSplitter`. Ids: 0 pad, 1 unk, 2 cls, then `oov_buckets` ids that share the rare
/// words by hash (two rare words differ for the model, most of the time), then the vocabulary,
/// most frequent first, ties in byte order.
class WordTokenizer : public Tokenizer {
 public:
  static constexpr std::int64_t kDefaultOovBuckets = 256;

  /// Throws norma::ValueError for a duplicate or empty word, or negative buckets.
  WordTokenizer(const std::vector<std::string>& vocabulary, std::int64_t oov_buckets);
  /// The `size` most frequent words of the given training reviews (fewer if there are not so many).
  static std::unique_ptr<WordTokenizer> train(const Dataset& dataset,
                                              const std::vector<std::int32_t>& indices,
                                              std::int64_t size,
                                              std::int64_t oov_buckets = kDefaultOovBuckets);
  static std::unique_ptr<WordTokenizer> load(const std::string& options, std::string_view payload);

  std::string kind() const override { return "word"; }
  std::int64_t vocab_size() const override { return first_word() + words_.size(); }
  TokenIds encode(std::string_view text) const override;
  std::string token(std::int64_t id) const override;
  /// Through the lexicon: one look-up a distinct word instead of one a token.
  std::vector<TokenIds> encode_reviews(const Dataset& dataset,
                                       const std::vector<Review>& reviews) const override;

 protected:
  std::string save_options() const override;
  std::string save_payload() const override;

 private:
  std::int64_t first_word() const { return cls_id + 1 + oov_buckets_; }
  std::int64_t id_of(std::string_view word) const;

  Lexicon words_;
  std::int64_t oov_buckets_;
};

}  // namespace imdb
