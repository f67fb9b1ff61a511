#include "imdb/text.h"

#include "../support/catch.h"

using imdb::clean_text;

TEST_CASE("clean_text turns markup and line ends into one newline") {
  CHECK(clean_text("one<br />two") == "one\ntwo");
  CHECK(clean_text("one <br /><BR/> <br>two") == "one\ntwo");
  CHECK(clean_text("one\r\ntwo\rthree") == "one\ntwo\nthree");
  CHECK(clean_text("<br />one<br />") == "one");
  CHECK(clean_text("a < b <bravo> <br") == "a < b <bravo> <br");
}

TEST_CASE("clean_text shrinks white space and drops control characters") {
  CHECK(clean_text("  a \t b\x01\x7f c ") == "a b c");
  CHECK(clean_text(std::string_view("a\0b", 3)) == "a b");
  CHECK(clean_text("a\u00a0b") == "a b");
  CHECK(clean_text("\ufeffa\u00adb\u200bc") == "abc");
  CHECK(clean_text("") == "");
  CHECK(clean_text(" \n ") == "");
}

TEST_CASE("clean_text reads C1 controls as Windows-1252") {
  CHECK(clean_text("don\u0092t") == "don\u2019t");
  CHECK(clean_text("\u0093quoted\u0094\u0085") == "\u201cquoted\u201d\u2026");
  CHECK(clean_text("a\u0096b\u0097c") == "a\u2013b\u2014c");
  CHECK(clean_text("caf\u00e9 \u0080") == "caf\u00e9 \u20ac");
  CHECK(clean_text("a\u0081b") == "a b");  // undefined in the code page
}

TEST_CASE("clean_text replaces invalid UTF-8, one mark a maximal part") {
  const std::string mark = "\ufffd";
  CHECK(clean_text("a\xff"
                   "b") == "a" + mark + "b");
  CHECK(clean_text("\xc0\xaf") == mark + mark);                        // overlong
  CHECK(clean_text("\xed\xa0\x80") == mark + mark + mark);             // surrogate
  CHECK(clean_text("\xf4\x90\x80\x80") == mark + mark + mark + mark);  // above U+10FFFF
  CHECK(clean_text("\xe2\x80") == mark);                               // truncated at the end
  CHECK(clean_text("\xe2\x80x") == mark + "x");
  CHECK(clean_text("\x92s") == mark + "s");  // a bare byte of the code page is not UTF-8
  CHECK(clean_text("\xf0\x9f\x98\x80") == "\xf0\x9f\x98\x80");
}

TEST_CASE("clean_text resolves character references") {
  CHECK(clean_text("Tom &amp; Jerry &lt;3 &quot;x&quot;") == "Tom & Jerry <3 \"x\"");
  CHECK(clean_text("it&#8217;s &#x2026; &#305;") == "it\u2019s \u2026 \u0131");
  CHECK(clean_text("&#146;") == "\u2019");
  CHECK(clean_text("&#0;&#xD800;&#x110000;") == "\ufffd\ufffd\ufffd");
  CHECK(clean_text("S&A; R&#; AT&T &unknown;") == "S&A; R&#; AT&T &unknown;");
}

TEST_CASE("clean_text is idempotent") {
  const std::string once = clean_text("  A <br /> b &#133; \xff c\u0092d  ");
  CHECK(clean_text(once) == once);
}

TEST_CASE("to_lower covers the alphabets of the reviews") {
  CHECK(imdb::to_lower(U'A') == U'a');
  CHECK(imdb::to_lower(U'\u00c9') == U'\u00e9');
  CHECK(imdb::to_lower(U'\u00d7') == U'\u00d7');
  CHECK(imdb::to_lower(U'\u0160') == U'\u0161');
  CHECK(imdb::to_lower(U'\u017d') == U'\u017e');
  CHECK(imdb::to_lower(U'\u0178') == U'\u00ff');
  CHECK(imdb::to_lower(U'\u0416') == U'\u0436');
  CHECK(imdb::to_lower(U'\u0161') == U'\u0161');
}
