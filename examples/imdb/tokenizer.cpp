#include "imdb/tokenizer.h"

#include <norma/core/error.h>

#include <nlohmann/json.hpp>

#include "imdb/random.h"
#include "imdb/sentencepiece_tokenizer.h"
#include "imdb/word_tokenizer.h"

namespace imdb {

using norma::check;
using norma::FileError;

namespace {

// A blob is one line of JSON (format, version, kind, options, size and hash of the rest), then the
// payload.
constexpr const char* kFormat = "norma-imdb-tokenizer";
constexpr int kVersion = 1;

std::string hex_hash(std::string_view bytes) { return fmt::format("{:016x}", hash_bytes(bytes)); }

}  // namespace

std::string Tokenizer::save() const {
  const std::string payload = save_payload();
  const nlohmann::json header = {
      {"format", kFormat},       {"version", kVersion},
      {"kind", kind()},          {"options", nlohmann::json::parse(save_options())},
      {"bytes", payload.size()}, {"fnv1a", hex_hash(payload)}};
  return header.dump() + "\n" + payload;
}

std::unique_ptr<Tokenizer> make_tokenizer(std::string_view kind, std::int64_t size,
                                          const Dataset& dataset,
                                          const std::vector<std::int32_t>& indices) {
  check(kind == "word" || kind == "bpe" || kind == "unigram", "make_tokenizer",
        "kind must be word, bpe or unigram; got '{}'", kind);
  check(!indices.empty(), "make_tokenizer", "there must be reviews to learn from; got none");
  if (kind == "word") return WordTokenizer::train(dataset, indices, size);
  return SentencePieceTokenizer::train(dataset, indices, std::string(kind), size);
}

std::unique_ptr<Tokenizer> load_tokenizer(std::string_view blob) {
  const std::size_t end = blob.find('\n');
  check<FileError>(end != std::string_view::npos, "load_tokenizer",
                   "the bytes must be a saved tokenizer; got {} bytes without a header",
                   blob.size());
  const std::string_view payload = blob.substr(end + 1);
  try {
    const auto header = nlohmann::json::parse(blob.substr(0, end));
    check<FileError>(header.at("format") == kFormat && header.at("version") == kVersion,
                     "load_tokenizer", "the bytes must be a {} of version {}; got {} of version {}",
                     kFormat, kVersion, header.at("format").dump(), header.at("version").dump());
    check<FileError>(
        header.at("bytes") == payload.size() && header.at("fnv1a") == hex_hash(payload),
        "load_tokenizer", "the tokenizer must be undamaged; got {} bytes of {}", payload.size(),
        header.at("bytes").dump());
    const std::string kind = header.at("kind");
    if (kind == "word") return WordTokenizer::load(header.at("options").dump(), payload);
    check<FileError>(kind == "bpe" || kind == "unigram", "load_tokenizer",
                     "the kind must be word, bpe or unigram; got '{}'", kind);
    return std::make_unique<SentencePieceTokenizer>(kind, std::string(payload));
  } catch (const nlohmann::json::exception& error) {
    throw FileError("load_tokenizer",
                    fmt::format("the bytes must be a saved tokenizer; got a header that does not "
                                "fit: {}",
                                error.what()));
  }
}

TokenIds bigram_ids(const TokenIds& tokens, std::int64_t buckets) {
  check(buckets >= 2, "bigram_ids", "buckets must be at least 2; got {}", buckets);
  TokenIds ids(tokens.size());
  constexpr std::uint64_t kBegin = ~std::uint64_t{0};
  std::uint64_t previous = kBegin;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto token = static_cast<std::uint64_t>(tokens[i]);
    ids[i] = 1 + static_cast<std::int64_t>(mix(previous, token) %
                                           static_cast<std::uint64_t>(buckets - 1));
    previous = token;
  }
  return ids;
}

}  // namespace imdb
