#include "imdb/text.h"

#include <array>
#include <cstdint>
#include <utility>

namespace imdb {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

// What Windows-1252 means by 0x80..0x9F; 0 where it leaves the byte undefined.
constexpr std::array<char16_t, 32> kWindows1252 = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

constexpr std::array<std::pair<std::string_view, char32_t>, 14> kNamedReferences = {{
    {"amp", '&'},
    {"lt", '<'},
    {"gt", '>'},
    {"quot", '"'},
    {"apos", '\''},
    {"nbsp", 0xA0},
    {"eacute", 0xE9},
    {"hellip", 0x2026},
    {"ndash", 0x2013},
    {"mdash", 0x2014},
    {"lsquo", 0x2018},
    {"rsquo", 0x2019},
    {"ldquo", 0x201C},
    {"rdquo", 0x201D},
}};

bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Length of a `<br ...>` tag at `at`, or 0.
std::size_t line_break_tag(std::string_view text, std::size_t at) {
  if (at + 3 >= text.size() || (text[at + 1] | 0x20) != 'b' || (text[at + 2] | 0x20) != 'r')
    return 0;
  std::size_t i = at + 3;
  while (i < text.size() && (text[i] == ' ' || text[i] == '/')) ++i;
  return i < text.size() && text[i] == '>' ? i + 1 - at : 0;
}

// The character of a reference `&...;` at `at` and its length; length 0 if there is none.
std::pair<char32_t, std::size_t> character_reference(std::string_view text, std::size_t at) {
  const std::size_t end = text.substr(at, 12).find(';');
  if (end == std::string_view::npos || end < 2) return {0, 0};
  std::string_view body = text.substr(at + 1, end - 1);
  if (body[0] != '#') {
    for (const auto& [name, code] : kNamedReferences)
      if (body == name) return {code, end + 1};
    return {0, 0};
  }
  body.remove_prefix(1);
  const bool hex = !body.empty() && (body[0] | 0x20) == 'x';
  if (hex) body.remove_prefix(1);
  if (body.empty()) return {0, 0};
  std::uint64_t code = 0;  // at most nine digits: cannot overflow
  for (char c : body) {
    const bool digit = c >= '0' && c <= '9';
    const char low = static_cast<char>(c | 0x20);
    if (!digit && !(hex && low >= 'a' && low <= 'f')) return {0, 0};
    code = code * (hex ? 16 : 10) + static_cast<std::uint64_t>(digit ? c - '0' : low - 'a' + 10);
  }
  const bool scalar = code != 0 && code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
  return {scalar ? static_cast<char32_t>(code) : kReplacement, end + 1};
}

// Collects clean characters; white space is held back until something follows it.
class Cleaner {
 public:
  explicit Cleaner(std::size_t capacity) { out_.reserve(capacity); }

  void put(char32_t code) {
    if (code >= 0x80 && code <= 0x9F) code = kWindows1252[code - 0x80];
    if (code == '\n' || code == '\r' || code == 0x2028 || code == 0x2029) return break_line();
    if (code <= 0x20 || code == 0x7F || code == 0xA0) return space();
    if (code == 0xAD || code == 0xFEFF || code == 0x200B) return;
    flush_space();
    if (code < 0x80)
      out_.push_back(static_cast<char>(code));
    else
      append_utf8(out_, code);
  }
  void put_visible_ascii(std::string_view run) {
    flush_space();
    out_.append(run);
  }
  void break_line() { pending_ = '\n'; }
  std::string take() { return std::move(out_); }

 private:
  void space() {
    if (!pending_) pending_ = ' ';
  }
  void flush_space() {
    if (pending_ && !out_.empty()) out_.push_back(pending_);
    pending_ = 0;
  }
  std::string out_;
  char pending_ = 0;
};

}  // namespace

char32_t decode_utf8(std::string_view text, std::size_t& position) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(position++);
  if (lead < 0x80) return lead;
  if (lead < 0xC2 || lead > 0xF4) return kReplacement;
  const int more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  char32_t code = lead & (0x3F >> more);
  for (int i = 0; i < more; ++i) {
    // Only the second byte has a lead-dependent range: it excludes overlong forms, surrogates and
    // what lies above U+10FFFF.
    unsigned char low = 0x80, high = 0xBF;
    if (i == 0 && lead == 0xE0) low = 0xA0;
    if (i == 0 && lead == 0xED) high = 0x9F;
    if (i == 0 && lead == 0xF0) low = 0x90;
    if (i == 0 && lead == 0xF4) high = 0x8F;
    if (position >= text.size() || byte(position) < low || byte(position) > high)
      return kReplacement;
    code = (code << 6) | (byte(position++) & 0x3F);
  }
  return code;
}

void append_utf8(std::string& out, char32_t code) {
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) code = kReplacement;
  const auto add = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | (code >> 6));
  } else {
    if (code < 0x10000) {
      add(0xE0 | (code >> 12));
    } else {
      add(0xF0 | (code >> 18));
      add(0x80 | ((code >> 12) & 0x3F));
    }
    add(0x80 | ((code >> 6) & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

char32_t to_lower(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  if (c >= 0xC0 && c <= 0xDE && c != 0xD7) return c + 32;
  if (c == 0x178) return 0xFF;
  if (c == 0x130) return 'i';
  // Latin Extended-A: pairs, capital first; the parity changes twice.
  if ((c >= 0x100 && c <= 0x137) || (c >= 0x14A && c <= 0x177)) return c | 1;
  if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E)) return c + (c & 1);
  if (c >= 0x391 && c <= 0x3A9) return c + 32;
  if (c >= 0x410 && c <= 0x42F) return c + 32;
  if (c >= 0x400 && c <= 0x40F) return c + 80;
  return c;
}

std::string clean_text(std::string_view raw) {
  Cleaner cleaner(raw.size());
  std::size_t i = 0;
  while (i < raw.size()) {
    const auto c = static_cast<unsigned char>(raw[i]);
    if (c == '<') {
      if (const std::size_t length = line_break_tag(raw, i)) {
        cleaner.break_line();
        i += length;
        continue;
      }
    } else if (c == '&') {
      if (const auto [code, length] = character_reference(raw, i); length) {
        cleaner.put(code);
        i += length;
        continue;
      }
    } else if (is_ascii_letter(raw[i])) {  // the common case: a whole word at once
      const std::size_t begin = i;
      while (i < raw.size() && is_ascii_letter(raw[i])) ++i;
      cleaner.put_visible_ascii(raw.substr(begin, i - begin));
      continue;
    }
    cleaner.put(decode_utf8(raw, i));
  }
  return cleaner.take();
}

}  // namespace imdb
