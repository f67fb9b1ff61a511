#include "imdb/sentencepiece_tokenizer.h"

#include <norma/core/error.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace imdb {

using norma::check;

namespace {

// The library skips sentences beyond 4,192 bytes, so a review goes in by its lines, cut at spaces.
constexpr std::size_t kMaxSentence = 2000;
constexpr std::size_t kMaxTrainingBytes = 8 << 20;

// Calls `sink` for each stretch without white space.
template <class Sink>
void for_each_word(std::string_view text, Sink&& sink) {
  constexpr std::string_view kSpace = " \t\n";
  std::size_t begin = text.find_first_not_of(kSpace);
  while (begin != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
    sink(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kSpace, end);
  }
}

std::vector<std::string> sentences_of(const Dataset& dataset,
                                      const std::vector<std::int32_t>& indices) {
  std::size_t bytes = 0;
  for (std::int32_t i : indices) bytes += dataset.train.at(static_cast<std::size_t>(i)).text.size();
  const std::size_t stride = bytes / kMaxTrainingBytes + 1;
  std::vector<std::string> sentences;
  for (std::size_t k = 0; k < indices.size(); k += stride) {
    std::string_view rest = dataset.train[static_cast<std::size_t>(indices[k])].text;
    while (!rest.empty()) {
      std::size_t end = std::min(rest.find('\n'), rest.size());
      if (end > kMaxSentence) {
        end = rest.rfind(' ', kMaxSentence);
        if (end == std::string_view::npos || end == 0) end = std::min(rest.find(' '), rest.size());
      }
      if (end > 0) sentences.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
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

struct SentencePieceTokenizer::Processor {
  sentencepiece::SentencePieceProcessor library;
};

SentencePieceTokenizer::SentencePieceTokenizer(std::string kind, std::string model)
    : kind_(std::move(kind)), model_(std::move(model)), processor_(std::make_unique<Processor>()) {
  const auto status = processor_->library.LoadFromSerializedProto(model_);
  check<norma::FileError>(status.ok(), "load_tokenizer",
                          "the bytes must be a SentencePiece model; got: {}", status.ToString());
}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;

std::unique_ptr<SentencePieceTokenizer> SentencePieceTokenizer::train(
    const Dataset& dataset, const std::vector<std::int32_t>& indices, const std::string& kind,
    std::int64_t size) {
  check(kind == "bpe" || kind == "unigram", "make_tokenizer",
        "kind must be bpe or unigram; got '{}'", kind);
  const std::unordered_map<std::string, std::string> options = {
      {"model_type", kind},
      {"vocab_size", std::to_string(size)},
      {"hard_vocab_limit", "false"},  // a small text gives a smaller vocabulary, not an error
      {"normalization_rule_name", "nmt_nfkc_cf"},
      {"pad_id", std::to_string(pad_id)},
      {"unk_id", std::to_string(unk_id)},
      {"bos_id", std::to_string(cls_id)},
      {"eos_id", "-1"},
      {"bos_piece", "<cls>"},
      {"num_threads", "2"},  // fixed: sums over threads must not depend on the machine
      {"minloglevel", "2"},  // errors only
  };
  Sentences sentences(sentences_of(dataset, indices));
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &sentences, &model);
  check(status.ok(), "make_tokenizer", "SentencePiece must be able to learn {} {} pieces; got: {}",
        size, kind, status.ToString());
  return std::make_unique<SentencePieceTokenizer>(kind, std::move(model));
}

std::int64_t SentencePieceTokenizer::vocab_size() const {
  return processor_->library.GetPieceSize();
}

void SentencePieceTokenizer::append_word(std::string_view word, TokenIds& ids) const {
  const std::vector<int> pieces = processor_->library.EncodeAsIds({word.data(), word.size()});
  ids.insert(ids.end(), pieces.begin(), pieces.end());
}

TokenIds SentencePieceTokenizer::encode(std::string_view text) const {
  TokenIds ids;
  for_each_word(text, [&](std::string_view word) { append_word(word, ids); });
  return ids;
}

std::vector<TokenIds> SentencePieceTokenizer::encode_reviews(
    const Dataset&, const std::vector<Review>& reviews) const {
  Lexicon words;
  for (const Review& review : reviews)
    for_each_word(review.text, [&](std::string_view word) { words.add(word); });
  std::vector<TokenIds> pieces(words.size());
  const std::int64_t count = words.size();
#pragma omp parallel for schedule(dynamic, 256)
  for (std::int64_t i = 0; i < count; ++i)
    append_word(words[static_cast<std::uint32_t>(i)], pieces[static_cast<std::size_t>(i)]);
  std::vector<TokenIds> encoded(reviews.size());
  for (std::size_t i = 0; i < reviews.size(); ++i)
    for_each_word(reviews[i].text, [&](std::string_view word) {
      const TokenIds& ids = pieces[words.find(word)];
      encoded[i].insert(encoded[i].end(), ids.begin(), ids.end());
    });
  return encoded;
}

std::string SentencePieceTokenizer::token(std::int64_t id) const {
  check<norma::IndexError>(id >= 0 && id < vocab_size(), "sentencepiece_tokenizer",
                           "id must be in [0, {}); got {}", vocab_size(), id);
  return processor_->library.IdToPiece(static_cast<int>(id));
}

}  // namespace imdb
