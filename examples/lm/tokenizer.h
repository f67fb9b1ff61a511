// Byte-pair pieces by the SentencePiece library, from text to ids and back without loss.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lm {

using TokenIds = std::vector<std::int64_t>;

/// Case, spaces and line ends stay; what no piece covers becomes bytes. Pieces do not cross white
/// space but may begin with one space. Immutable and safe to share between threads.
class Tokenizer {
 public:
  static constexpr std::int64_t unk_id = 0;  ///< never produced: there is a piece for every byte
  static constexpr std::int64_t bos_id = 1;  ///< begins every text
  static constexpr std::int64_t eos_id = 2;  ///< ends every text

  /// Takes a model as SentencePiece serializes it. Throws norma::FileError if it is not one.
  explicit Tokenizer(std::string model);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// Learns at most `size` pieces (fewer where the texts give no more) from at most 8 MiB, evenly
  /// drawn from `texts`. Throws norma::ValueError if the library refuses, with its reason.
  static std::unique_ptr<Tokenizer> train(const std::vector<std::string>& texts, std::int64_t size);

  std::int64_t vocab_size() const;
  TokenIds encode(std::string_view text) const;
  /// bos, text, eos for each text, one after the other. Encodes each distinct word once.
  TokenIds encode_all(const std::vector<std::string>& texts) const;
  /// The text of the ids; special ones give nothing. A character may be spread over several ids.
  std::string decode(const TokenIds& ids) const;
  /// SentencePiece's own file, which its other programs read, too.
  const std::string& model() const { return model_; }

 private:
  struct Processor;  // keeps the library's header out of ours
  std::string model_;
  std::unique_ptr<Processor> processor_;
};

}  // namespace lm
