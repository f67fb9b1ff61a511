// Tokenizers: clean text to token ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "imdb/dataset.h"

namespace imdb {

using TokenIds = std::vector<std::int64_t>;

/// Maps clean text (see `clean_text`) to ids in [0, vocab_size()). Immutable and safe to share
/// between threads.
class Tokenizer {
 public:
  static constexpr std::int64_t pad_id = 0;  ///< fills batches up; never produced by `encode`
  static constexpr std::int64_t unk_id = 1;  ///< unknown token; also what word dropout leaves
  static constexpr std::int64_t cls_id = 2;  ///< put in front by `BatchOptions::cls`

  virtual ~Tokenizer() = default;
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// "word", "bpe" or "unigram".
  virtual std::string kind() const = 0;
  /// The number of ids, special ones included: the rows of an embedding table.
  virtual std::int64_t vocab_size() const = 0;
  virtual TokenIds encode(std::string_view text) const = 0;
  /// A readable form of one id. Throws norma::IndexError for an id out of range.
  virtual std::string token(std::int64_t id) const = 0;
  /// `encode` of every review, faster: each distinct word once. `reviews` must be a side of
  /// `dataset`.
  virtual std::vector<TokenIds> encode_reviews(const Dataset& dataset,
                                               const std::vector<Review>& reviews) const = 0;
  /// Everything as one string of bytes, which `load_tokenizer` turns back into an equal tokenizer.
  std::string save() const;

 protected:
  /// The part of `save` that the kind decides: a JSON object of options and raw bytes.
  virtual std::string save_options() const = 0;
  virtual std::string save_payload() const = 0;
};

/// Learns a tokenizer from `dataset.train[i]` for i in `indices` (so that development reviews stay
/// unseen).
///
/// `kind` is "word" (`size` most frequent words, plus the special ids and buckets for the rest) or
/// "bpe" or "unigram" (`size` pieces in all, by SentencePiece). The same input gives the same
/// tokenizer. Throws norma::ValueError for another kind, or a size that the data cannot fill.
std::unique_ptr<Tokenizer> make_tokenizer(std::string_view kind, std::int64_t size,
                                          const Dataset& dataset,
                                          const std::vector<std::int32_t>& indices);

/// The inverse of `save`. Throws norma::FileError if the bytes are not a tokenizer or damaged.
std::unique_ptr<Tokenizer> load_tokenizer(std::string_view blob);

/// One hashed bigram id a position, from its token and the one before it (a begin marker at
/// position 0). Ids are in [1, buckets); 0 is left for padding, so that an embedding table of
/// `buckets` rows can use padding_idx 0. Throws norma::ValueError unless buckets >= 2.
TokenIds bigram_ids(const TokenIds& tokens, std::int64_t buckets);

}  // namespace imdb
