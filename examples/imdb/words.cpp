#include "imdb/words.h"

#include <algorithm>
#include <array>

#include "imdb/text.h"

namespace imdb {

std::size_t Lexicon::slot(std::string_view word, std::uint64_t hash) const {
  const std::size_t mask = table_.size() - 1;
  // FNV's low bits are its weaker ones: fold the high half in.
  std::size_t i = (hash ^ (hash >> 32)) & mask;
  while (table_[i] != kNone && !(hashes_[table_[i]] == hash && (*this)[table_[i]] == word))
    i = (i + 1) & mask;
  return i;
}

std::uint32_t Lexicon::find(std::string_view word) const {
  return table_.empty() ? kNone : table_[slot(word, hash_bytes(word))];
}

std::uint32_t Lexicon::add(std::string_view word) {
  if (hashes_.size() * 2 >= table_.size()) grow();
  const std::uint64_t hash = hash_bytes(word);
  std::uint32_t& entry = table_[slot(word, hash)];
  if (entry == kNone) {
    entry = size();
    arena_.append(word);
    begins_.push_back(arena_.size());
    hashes_.push_back(hash);
  }
  return entry;
}

void Lexicon::grow() {
  table_.assign(std::max<std::size_t>(1024, table_.size() * 2), kNone);
  for (std::uint32_t id = 0; id < size(); ++id) table_[slot((*this)[id], hashes_[id])] = id;
}

namespace {

bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
// Everything beyond ASCII that `lower` left in place and did not isolate counts as a letter.
bool is_letter(unsigned char c) { return (c >= 'a' && c <= 'z') || c >= 0x80; }
bool is_word(unsigned char c) { return is_letter(c) || is_digit(c); }
bool is_space(unsigned char c) { return c <= ' '; }

// Symbols beyond ASCII stand alone, like ASCII marks. They travel with a separator on both sides.
bool is_symbol(char32_t c) {
  return (c >= 0xA1 && c <= 0xBF && c != 0xAA && c != 0xB5 && c != 0xBA) || c == 0xD7 ||
         c == 0xF7 || (c >= 0x2000 && c <= 0x2BFF) || (c >= 0x3000 && c <= 0x303F) ||
         (c >= 0xE000 && c <= 0xF8FF) || c == 0xFFFD || c >= 0x1F000;
}

// The ASCII form of a typographic mark, or nothing.
std::string_view ascii_form(char32_t c) {
  switch (c) {
    case 0x2018:
    case 0x2019:
    case 0x201B:
    case 0xB4:
    case '`':
      return "'";
    case 0x201C:
    case 0x201D:
    case 0x201E:
    case 0xAB:
    case 0xBB:
      return "\"";
    case 0x2026:
      return "...";
    case 0x2010:
    case 0x2011:
    case 0x2012:
    case 0x2013:
      return "-";
    case 0x2014:
    case 0x2015:
      return "--";
    default:
      return {};
  }
}

constexpr std::array<std::string_view, 6> kSuffixes = {"s", "re", "ve", "ll", "d", "m"};

}  // namespace

void WordSplitter::lower(std::string_view text) {
  text_.clear();
  text_.reserve(text.size() + 8);
  std::size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) < 0x80) {
      ++i;
      text_.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c == '`' ? '\'' : c);
      continue;
    }
    const char32_t code = decode_utf8(text, i);
    if (const std::string_view ascii = ascii_form(code); !ascii.empty()) {
      text_.append(ascii);
    } else if (is_symbol(code)) {
      text_.push_back(' ');
      append_utf8(text_, code);
      text_.push_back(' ');
    } else {
      append_utf8(text_, to_lower(code));
    }
  }
}

bool WordSplitter::next() {
  while (position_ < text_.size() && is_space(static_cast<unsigned char>(text_[position_])))
    ++position_;
  if (position_ == text_.size()) return false;
  suffix_ = {};
  if (is_word(static_cast<unsigned char>(text_[position_])))
    read_word();
  else
    read_mark();
  return true;
}

void WordSplitter::read_word() {
  const std::string_view text = text_;
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(' ');
  };
  const std::size_t begin = position_;
  std::size_t i = begin;
  bool number = true;  // only digits so far
  for (;;) {
    while (is_word(at(i))) number &= is_digit(at(i++));
    if (number && (at(i) == '.' || at(i) == ',' || at(i) == '/') && is_digit(at(i + 1))) {
      ++i;
      continue;
    }
    if (at(i) != '\'' || !is_letter(at(i + 1))) break;
    std::size_t end = i + 1;
    while (is_word(at(end))) ++end;
    const std::string_view tail = text.substr(i + 1, end - i - 1);
    if (tail == "t" && at(i - 1) == 'n' && i - begin >= 2) {
      token_ = text.substr(begin, i - 1 - begin);
      suffix_ = text.substr(i - 1, 3);
      position_ = end;
      return;
    }
    if (std::find(kSuffixes.begin(), kSuffixes.end(), tail) != kSuffixes.end()) {
      token_ = text.substr(begin, i - begin);
      suffix_ = text.substr(i, end - i);
      position_ = end;
      return;
    }
    number = false;
    i = end;
  }
  token_ = text.substr(begin, i - begin);
  position_ = i;
}

void WordSplitter::read_mark() {
  const char mark = text_[position_];
  std::size_t end = position_ + 1;
  while (end < text_.size() && text_[end] == mark) ++end;
  const bool run = end - position_ > 1;
  if (run && mark == '.')
    token_ = "...";
  else if (run && mark == '!')
    token_ = "!!";
  else if (run && mark == '?')
    token_ = "??";
  else if (run && mark == '-')
    token_ = "--";
  else if (run && mark == '*')
    token_ = "**";
  else {
    token_ = std::string_view(text_).substr(position_, 1);
    end = position_ + 1;
  }
  position_ = end;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  WordSplitter().split(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

}  // namespace imdb
