#include "imdb/words.h"

#include "../support/catch.h"

using imdb::split_words;
using Words = std::vector<std::string>;

TEST_CASE("words are lower-cased and punctuation stands alone") {
  CHECK(split_words("Great film, really.") == Words{"great", "film", ",", "really", "."});
  CHECK(split_words("(\"Well-made\")") == Words{"(", "\"", "well", "-", "made", "\"", ")"});
  CHECK(split_words("CAF\u00c9 \u0160ok") == Words{"caf\u00e9", "\u0161ok"});
  CHECK(split_words("").empty());
  CHECK(split_words(" \n ").empty());
}

TEST_CASE("contractions split as in the Penn Treebank") {
  CHECK(split_words("don't can't isn't") == Words{"do", "n't", "ca", "n't", "is", "n't"});
  CHECK(split_words("It's we're I've he'll she'd I'm") ==
        Words{"it", "'s", "we", "'re", "i", "'ve", "he", "'ll", "she", "'d", "i", "'m"});
  CHECK(split_words("don\u2019t") == Words{"do", "n't"});
  CHECK(split_words("O'Brien's") == Words{"o'brien", "'s"});
  CHECK(split_words("'quoted'") == Words{"'", "quoted", "'"});
  CHECK(split_words("the 80's") == Words{"the", "80", "'s"});
  CHECK(split_words("n't 't") == Words{"n't", "'", "t"});
}

TEST_CASE("numbers and ratings are one token") {
  CHECK(split_words("10/10 7.5 1,000 2nd 1980s.") ==
        Words{"10/10", "7.5", "1,000", "2nd", "1980s", "."});
  CHECK(split_words("5, 6") == Words{"5", ",", "6"});
  CHECK(split_words("either/or") == Words{"either", "/", "or"});
}

TEST_CASE("runs of marks shrink and typographic marks become ASCII") {
  CHECK(split_words("so.... bad!!!! what??") == Words{"so", "...", "bad", "!!", "what", "??"});
  CHECK(split_words("***** out \u2026 a\u2014b \u201cx\u201d") ==
        Words{"**", "out", "...", "a", "--", "b", "\"", "x", "\""});
  CHECK(split_words("10\u20ac") == Words{"10", "\u20ac"});
}

TEST_CASE("a lexicon numbers words in order of appearance and finds them after growing") {
  imdb::Lexicon lexicon;
  CHECK(lexicon.find("a") == imdb::Lexicon::kNone);
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 5000; ++i)
      REQUIRE(lexicon.add("word" + std::to_string(i)) == static_cast<std::uint32_t>(i));
  CHECK(lexicon.size() == 5000);
  CHECK(lexicon.find("word4711") == 4711);
  CHECK(lexicon[4711] == "word4711");
  CHECK(lexicon.find("word5000") == imdb::Lexicon::kNone);
}
