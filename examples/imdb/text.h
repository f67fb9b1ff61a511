// Text as reviews need it: UTF-8 in and out, and the cleaning of one review.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace imdb {

/// Decodes the code point at `text[position]` and moves `position` behind it. Ill-formed bytes
/// (overlong forms, surrogates, values above U+10FFFF, truncated sequences) give U+FFFD, one for
/// each maximal ill-formed part, as the Unicode Standard recommends (section 3.9, table 3-8).
/// `position < text.size()` must hold.
char32_t decode_utf8(std::string_view text, std::size_t& position);

/// Appends the UTF-8 form of `code`; what is not a Unicode scalar value becomes U+FFFD.
void append_utf8(std::string& out, char32_t code);

/// Simple lower case of one code point: ASCII, Latin-1, Latin Extended-A, Greek, Cyrillic.
char32_t to_lower(char32_t code);

/// The raw bytes of a review file as clean, valid UTF-8:
///
/// - `<br>`, `<br/>`, `<br />` (58 % of the reviews have them) and line ends become `\n`;
/// - U+0080..U+009F, left over from a wrong conversion of Windows-1252, become what that code page
///   means by them (0x92 is an apostrophe);
/// - character references (`&amp;`, `&#8217;`, `&#x2026;`) become their character;
/// - invalid UTF-8 becomes U+FFFD; control characters and no-break spaces become spaces; byte-order
///   marks, zero-width spaces and soft hyphens vanish;
/// - white space runs shrink to one `\n` if they hold a line end, else to one space; none at the
///   ends.
///
/// Cleaning is idempotent unless a reference hides another one (`&amp;amp;`).
std::string clean_text(std::string_view raw);

}  // namespace imdb
