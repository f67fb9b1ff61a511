// Subword tokenizers by the SentencePiece library (Kudo and Richardson, 2018).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "imdb/tokenizer.h"

namespace imdb {

/// Byte-pair ("bpe") or unigram language model ("unigram") pieces over lower-cased NFKC text. Ids:
/// 0 pad, 1 unk, 2 cls, then the pieces. Pieces do not cross white space, so texts are encoded word
/// by word, which allows `encode_reviews` to encode each distinct word once (the library's
/// byte-pair encoder alone needs a minute for all reviews).
class SentencePieceTokenizer : public Tokenizer {
 public:
  /// Takes a model as SentencePiece serializes it. Throws norma::FileError if it is not one.
  SentencePieceTokenizer(std::string kind, std::string model);
  ~SentencePieceTokenizer() override;
  /// Learns `size` ids (fewer if the reviews do not give so many pieces) from at most 8 MiB of
  /// text, evenly drawn from the given reviews: more costs minutes and changes few pieces. Throws
  /// norma::ValueError if the library refuses, with its reason.
  static std::unique_ptr<SentencePieceTokenizer> train(const Dataset& dataset,
                                                       const std::vector<std::int32_t>& indices,
                                                       const std::string& kind, std::int64_t size);

  std::string kind() const override { return kind_; }
  std::int64_t vocab_size() const override;
  TokenIds encode(std::string_view text) const override;
  std::string token(std::int64_t id) const override;
  std::vector<TokenIds> encode_reviews(const Dataset& dataset,
                                       const std::vector<Review>& reviews) const override;

 protected:
  std::string save_options() const override { return "{}"; }
  std::string save_payload() const override { return model_; }

 private:
  void append_word(std::string_view word, TokenIds& ids) const;

  struct Processor;  // keeps the library's header out of ours
  std::string kind_;
  std::string model_;
  std::unique_ptr<Processor> processor_;
};

}  // namespace imdb
