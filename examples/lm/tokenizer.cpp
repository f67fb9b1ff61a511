#include "lm/tokenizer.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>

#include "norma/core/error.h"

namespace lm {

using norma::check;

namespace {

// The library skips sentences beyond 4,192 bytes, so a text goes in by its lines, cut at spaces.
constexpr std::size_t kMaxSentence = 2000;
constexpr std::size_t kMaxTrainingBytes = 8 << 20;

// A space at the front of a piece, as SentencePiece writes it.
constexpr std::string_view kSpace = "\u2581";

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// Calls `sink` for each word with the one space before it, and for every other white space alone.
template <class Sink>
void for_each_segment(std::string_view text, Sink&& sink) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = begin + 1;
    const bool word =
        !is_space(text[begin]) || (text[begin] == ' ' && end < text.size() && !is_space(text[end]));
    if (word)
      while (end < text.size() && !is_space(text[end])) ++end;
    sink(text.substr(begin, end - begin));
    begin = end;
  }
}

std::vector<std::string> sentences_of(const std::vector<std::string>& texts) {
  std::size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  const std::size_t stride = texts.size() > 1 ? bytes / kMaxTrainingBytes + 1 : 1;
  std::vector<std::string> sentences;
  std::size_t taken = 0;
  for (std::size_t k = 0; k < texts.size() && taken < kMaxTrainingBytes; k += stride) {
    std::string_view rest = texts[k];
    while (!rest.empty() && taken < kMaxTrainingBytes) {
      std::size_t end = std::min(rest.find('\n'), rest.size());
      std::size_t next = end + 1;
      if (end > kMaxSentence) {  // the space stays with the word behind it
        end = rest.rfind(' ', kMaxSentence);
        if (end == std::string_view::npos || end == 0) end = kMaxSentence;
        next = end;
      }
      if (end > 0) sentences.emplace_back(rest.substr(0, end));
      taken += end;
      rest.remove_prefix(std::min(next, rest.size()));
    }
  }
  return sentences;
}

class Sentences : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(std::vector<std::string> sentences) : sentences_(std::move(sentences)) {}
  bool done() const override { return at_ == sentences_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return sentences_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::vector<std::string> sentences_;
  std::size_t at_ = 0;
};

}  // namespace

struct Tokenizer::Processor {
  sentencepiece::SentencePieceProcessor library;
};

Tokenizer::Tokenizer(std::string model)
    : model_(std::move(model)), processor_(std::make_unique<Processor>()) {
  const auto status = processor_->library.LoadFromSerializedProto(model_);
  check<norma::FileError>(status.ok(), "tokenizer",
                          "the bytes must be a SentencePiece model; got: {}", status.ToString());
}

Tokenizer::~Tokenizer() = default;

std::unique_ptr<Tokenizer> Tokenizer::train(const std::vector<std::string>& texts,
                                            std::int64_t size) {
  const std::unordered_map<std::string, std::string> options = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(size)},
      {"hard_vocab_limit", "false"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "false"},
      {"byte_fallback", "true"},
      {"character_coverage", "0.9999"},
      {"unk_id", std::to_string(unk_id)},
      {"bos_id", std::to_string(bos_id)},
      {"eos_id", std::to_string(eos_id)},
      {"pad_id", "-1"},
      {"num_threads", "2"},  // fixed: the result must not depend on the machine
      {"minloglevel", "2"},  // errors only
  };
  Sentences sentences(sentences_of(texts));
  check<norma::ValueError>(!sentences.done(), "tokenizer", "there must be a text; got none");
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &sentences, &model);
  check<norma::ValueError>(status.ok(), "tokenizer",
                           "SentencePiece must be able to learn {} pieces from the text; got: {}; "
                           "try another --vocab-size",
                           size, status.ToString());
  return std::make_unique<Tokenizer>(std::move(model));
}

std::int64_t Tokenizer::vocab_size() const { return processor_->library.GetPieceSize(); }

TokenIds Tokenizer::encode(std::string_view text) const {
  TokenIds ids;
  for_each_segment(text, [&](std::string_view segment) {
    const auto pieces = processor_->library.EncodeAsIds({segment.data(), segment.size()});
    ids.insert(ids.end(), pieces.begin(), pieces.end());
  });
  return ids;
}

TokenIds Tokenizer::encode_all(const std::vector<std::string>& texts) const {
  std::unordered_map<std::string_view, std::vector<int>> known;
  TokenIds ids;
  for (const std::string& text : texts) {
    ids.push_back(bos_id);
    for_each_segment(text, [&](std::string_view segment) {
      auto [entry, is_new] = known.try_emplace(segment);
      if (is_new) entry->second = processor_->library.EncodeAsIds({segment.data(), segment.size()});
      ids.insert(ids.end(), entry->second.begin(), entry->second.end());
    });
    ids.push_back(eos_id);
  }
  return ids;
}

std::string Tokenizer::decode(const TokenIds& ids) const {
  const auto& library = processor_->library;
  std::string text;
  for (const std::int64_t id : ids) {
    check<norma::IndexError>(id >= 0 && id < vocab_size(), "tokenizer",
                             "an id must be in [0, {}); got {}", vocab_size(), id);
    const int piece = static_cast<int>(id);
    if (library.IsControl(piece) || library.IsUnknown(piece)) continue;
    const std::string& name = library.IdToPiece(piece);
    if (library.IsByte(piece)) {  // "<0x0A>"
      text += static_cast<char>(std::stoi(name.substr(3, 2), nullptr, 16));
      continue;
    }
    for (std::size_t at = 0; at < name.size();) {
      const bool space = name.compare(at, kSpace.size(), kSpace) == 0;
      text += space ? ' ' : name[at];
      at += space ? kSpace.size() : 1;
    }
  }
  return text;
}

}  // namespace lm
