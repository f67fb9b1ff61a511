// Words and punctuation: how a clean review falls apart into lower-cased tokens, and the table
// that gives each distinct one a number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace imdb {

/// FNV-1a, 64 bits: the stable hash behind lexicons and out-of-vocabulary buckets.
constexpr std::uint64_t hash_bytes(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

/// Numbers distinct strings 0, 1, 2, ... in order of first appearance. An open-addressing table
/// over one character arena: no allocation per word, as a vocabulary pass adds 13 million of them.
class Lexicon {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  /// The number of `word`, adding it if it is new.
  std::uint32_t add(std::string_view word);
  /// The number of `word`, or `kNone`.
  std::uint32_t find(std::string_view word) const;
  /// The word of a number; valid until the next `add`.
  std::string_view operator[](std::uint32_t id) const {
    return {arena_.data() + begins_[id], begins_[id + 1] - begins_[id]};
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(hashes_.size()); }

 private:
  std::size_t slot(std::string_view word, std::uint64_t hash) const;
  void grow();

  std::string arena_;
  std::vector<std::uint64_t> begins_ = {0};
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> table_;  // a power of two of numbers, kNone where free
};

/// Splits clean text into lower-cased tokens:
///
/// - words of letters and digits; contractions split as in the Penn Treebank: `don't` -> `do n't`,
///   `it's` -> `it 's`, likewise `'re 've 'll 'd 'm`; other inner apostrophes stay (`o'brien`);
/// - numbers with inner `.` or `,` (`7.5`, `1,000`) and ratings (`10/10`) are one token;
/// - each punctuation mark or symbol is one token, except that runs of `.` become `...` and runs
///   of `! ? - *` become the doubled mark; typographic quotes, dashes and the ellipsis become their
///   ASCII forms.
class WordSplitter {
 public:
  /// Calls `sink(std::string_view token)` for each token; the view is valid during the call.
  template <class Sink>
  void split(std::string_view text, Sink&& sink) {
    lower(text);
    position_ = 0;
    while (next()) {
      sink(token_);
      if (!suffix_.empty()) sink(suffix_);
    }
  }

 private:
  void lower(std::string_view text);
  bool next();
  void read_word();
  void read_mark();

  std::string text_;  // lower-cased, typographic marks as ASCII
  std::size_t position_ = 0;
  std::string_view token_;
  std::string_view suffix_;  // the split-off part of a contraction
};

/// The tokens of `text` by `WordSplitter`.
std::vector<std::string> split_words(std::string_view text);

}  // namespace imdb
