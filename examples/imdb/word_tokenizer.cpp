#include "imdb/word_tokenizer.h"

#include <norma/core/error.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace imdb {

using norma::check;

WordTokenizer::WordTokenizer(const std::vector<std::string>& vocabulary, std::int64_t oov_buckets)
    : oov_buckets_(oov_buckets) {
  check(oov_buckets >= 0, "word_tokenizer", "oov_buckets must be at least 0; got {}", oov_buckets);
  for (const std::string& word : vocabulary) {
    check(!word.empty(), "word_tokenizer", "words must not be empty; got an empty one");
    check(words_.add(word) + 1 == words_.size() && words_.find(word) + 1 == words_.size(),
          "word_tokenizer", "words must differ; got '{}' twice", word);
  }
}

std::unique_ptr<WordTokenizer> WordTokenizer::train(const Dataset& dataset,
                                                    const std::vector<std::int32_t>& indices,
                                                    std::int64_t size, std::int64_t oov_buckets) {
  check(size >= 1, "word_tokenizer", "the vocabulary must have at least 1 word; got {}", size);
  std::vector<std::int64_t> counts(dataset.words.size());
  for (std::int32_t i : indices)
    for (std::uint32_t word : dataset.train.at(static_cast<std::size_t>(i)).words) ++counts[word];
  std::vector<std::uint32_t> order;
  for (std::uint32_t word = 0; word < dataset.words.size(); ++word)
    if (counts[word] > 0) order.push_back(word);
  // Bytes break ties: numbers in the lexicon depend on the order of the archive.
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return counts[a] != counts[b] ? counts[a] > counts[b] : dataset.words[a] < dataset.words[b];
  };
  const auto kept = std::min<std::size_t>(order.size(), static_cast<std::size_t>(size));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    before);
  std::vector<std::string> vocabulary;
  for (std::size_t i = 0; i < kept; ++i) vocabulary.emplace_back(dataset.words[order[i]]);
  return std::make_unique<WordTokenizer>(vocabulary, oov_buckets);
}

std::int64_t WordTokenizer::id_of(std::string_view word) const {
  const std::uint32_t found = words_.find(word);
  if (found != Lexicon::kNone) return first_word() + found;
  if (oov_buckets_ == 0) return unk_id;
  const auto buckets = static_cast<std::uint64_t>(oov_buckets_);
  return cls_id + 1 + static_cast<std::int64_t>(hash_bytes(word) % buckets);
}

TokenIds WordTokenizer::encode(std::string_view text) const {
  TokenIds ids;
  WordSplitter().split(text, [&](std::string_view word) { ids.push_back(id_of(word)); });
  return ids;
}

std::string WordTokenizer::token(std::int64_t id) const {
  check<norma::IndexError>(id >= 0 && id < vocab_size(), "word_tokenizer",
                           "id must be in [0, {}); got {}", vocab_size(), id);
  if (id >= first_word()) return std::string(words_[static_cast<std::uint32_t>(id - first_word())]);
  if (id > cls_id) return "<oov" + std::to_string(id - cls_id - 1) + ">";
  return id == pad_id ? "<pad>" : id == unk_id ? "<unk>" : "<cls>";
}

std::vector<TokenIds> WordTokenizer::encode_reviews(const Dataset& dataset,
                                                    const std::vector<Review>& reviews) const {
  std::vector<std::int64_t> ids(dataset.words.size());
  for (std::uint32_t word = 0; word < dataset.words.size(); ++word)
    ids[word] = id_of(dataset.words[word]);
  std::vector<TokenIds> encoded(reviews.size());
  for (std::size_t i = 0; i < reviews.size(); ++i) {
    encoded[i].reserve(reviews[i].words.size());
    for (std::uint32_t word : reviews[i].words) encoded[i].push_back(ids[word]);
  }
  return encoded;
}

std::string WordTokenizer::save_options() const {
  return nlohmann::json{{"oov_buckets", oov_buckets_}}.dump();
}

std::string WordTokenizer::save_payload() const {
  std::string bytes;
  for (std::uint32_t word = 0; word < words_.size(); ++word) {
    bytes.append(words_[word]);
    bytes.push_back('\n');  // no token holds white space
  }
  return bytes;
}

std::unique_ptr<WordTokenizer> WordTokenizer::load(const std::string& options,
                                                   std::string_view payload) {
  std::vector<std::string> vocabulary;
  while (!payload.empty()) {
    const std::size_t end = std::min(payload.find('\n'), payload.size());
    vocabulary.emplace_back(payload.substr(0, end));
    payload.remove_prefix(std::min(end + 1, payload.size()));
  }
  return std::make_unique<WordTokenizer>(
      vocabulary, nlohmann::json::parse(options).at("oov_buckets").get<std::int64_t>());
}

}  // namespace imdb
