#include "imdb/tokenizer.h"

#include <norma/core/error.h>

#include <algorithm>
#include <set>

#include "../support/catch.h"
#include "imdb/word_tokenizer.h"

using namespace imdb;
using Catch::Contains;

namespace {

const Dataset& sample() {
  static const Dataset dataset = read_sample();
  return dataset;
}

std::vector<std::int32_t> some_reviews() {
  std::vector<std::int32_t> indices;
  for (std::int32_t i = 0; i < 1000; i += 5) indices.push_back(i);
  return indices;
}

}  // namespace

TEST_CASE("word ids: special ones, buckets, then words by frequency") {
  const WordTokenizer tokenizer({"the", "film", "n't"}, 4);
  CHECK(tokenizer.vocab_size() == 3 + 4 + 3);
  CHECK(tokenizer.encode("The FILM isn't the") == TokenIds{7, 8, tokenizer.encode("is")[0], 9, 7});
  const std::int64_t rare = tokenizer.encode("is")[0];
  CHECK((rare >= 3 && rare < 7));
  CHECK(tokenizer.encode("is is") == TokenIds{rare, rare});
  CHECK(tokenizer.token(7) == "the");
  CHECK(tokenizer.token(0) == "<pad>");
  CHECK(tokenizer.token(1) == "<unk>");
  CHECK(tokenizer.token(2) == "<cls>");
  CHECK(tokenizer.token(rare) == "<oov" + std::to_string(rare - 3) + ">");
  CHECK_THROWS_AS(tokenizer.token(10), norma::IndexError);
  CHECK(WordTokenizer({"a"}, 0).encode("b a") == TokenIds{1, 3});
  CHECK_THROWS_WITH(WordTokenizer({"a", "b", "a"}, 0), Contains("'a' twice"));
}

TEST_CASE("the word vocabulary is the most frequent words of the given reviews only") {
  Dataset dataset;
  for (const char* text : {"b b b a a c", "z z z z z z z z"}) {
    Review review;
    review.text = text;
    for (const std::string& word : split_words(text))
      review.words.push_back(dataset.words.add(word));
    dataset.train.push_back(review);
  }
  const auto tokenizer = WordTokenizer::train(dataset, {0}, 2, 0);
  CHECK(tokenizer->vocab_size() == 5);
  CHECK(tokenizer->token(3) == "b");
  CHECK(tokenizer->token(4) == "a");
  CHECK(tokenizer->encode("z c") == TokenIds{1, 1});
}

TEST_CASE("every tokenizer repeats, round-trips and keeps its ids in range") {
  const std::string kind = GENERATE("word", "bpe", "unigram");
  CAPTURE(kind);
  const std::int64_t size = 1500;
  const auto tokenizer = make_tokenizer(kind, size, sample(), some_reviews());
  CHECK(tokenizer->kind() == kind);
  if (kind == "word")
    CHECK(tokenizer->vocab_size() == size + 3 + WordTokenizer::kDefaultOovBuckets);
  else
    CHECK(tokenizer->vocab_size() == size);

  const std::string blob = tokenizer->save();
  CHECK(make_tokenizer(kind, size, sample(), some_reviews())->save() == blob);
  const auto loaded = load_tokenizer(blob);
  CHECK(loaded->save() == blob);
  CHECK(loaded->kind() == kind);
  CHECK(loaded->vocab_size() == tokenizer->vocab_size());

  const std::vector<TokenIds> encoded = tokenizer->encode_reviews(sample(), sample().test);
  REQUIRE(encoded.size() == 1000);
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < encoded.size(); i += 7) {
    REQUIRE(encoded[i] == tokenizer->encode(sample().test[i].text));
    REQUIRE(encoded[i] == loaded->encode(sample().test[i].text));
    seen.insert(encoded[i].begin(), encoded[i].end());
  }
  CHECK(*seen.begin() >= Tokenizer::unk_id);
  CHECK(seen.count(Tokenizer::cls_id) == 0);
  CHECK(*seen.rbegin() < tokenizer->vocab_size());
  CHECK(seen.size() > 1000);
  CHECK(tokenizer->encode("").empty());
  CHECK(tokenizer->encode("GREAT Film") == tokenizer->encode("great film"));
  CHECK(tokenizer->token(Tokenizer::cls_id) == "<cls>");
}

TEST_CASE("damaged tokenizers are refused") {
  std::string blob = make_tokenizer("word", 100, sample(), some_reviews())->save();
  CHECK_THROWS_AS(load_tokenizer(""), norma::FileError);
  CHECK_THROWS_AS(load_tokenizer("garbage\nmore"), norma::FileError);
  CHECK_THROWS_AS(load_tokenizer("{\"format\":\"x\"}\n"), norma::FileError);
  CHECK_THROWS_WITH(load_tokenizer(blob.substr(0, blob.size() - 3)), Contains("undamaged"));
  std::string flipped = blob;
  flipped.back() = '\t';
  CHECK_THROWS_WITH(load_tokenizer(flipped), Contains("undamaged"));
}

TEST_CASE("impossible tokenizers are refused with the reason") {
  CHECK_THROWS_WITH(make_tokenizer("char", 100, sample(), some_reviews()),
                    Contains("word, bpe or unigram") && Contains("'char'"));
  CHECK_THROWS_AS(make_tokenizer("word", 0, sample(), some_reviews()), norma::ValueError);
  CHECK_THROWS_AS(make_tokenizer("word", 10, sample(), {}), norma::ValueError);
  CHECK_THROWS_AS(make_tokenizer("bpe", 5, sample(), some_reviews()), norma::ValueError);
}

TEST_CASE("bigram ids depend on the token and the one before it") {
  const TokenIds ids = bigram_ids({5, 6, 5, 6, 6}, 1 << 20);
  REQUIRE(ids.size() == 5);
  CHECK(ids[1] == ids[3]);  // 5 6
  CHECK(ids[0] != ids[2]);  // begin 5, 6 5
  CHECK(ids[2] != ids[1]);  // order matters
  CHECK(std::set<std::int64_t>(ids.begin(), ids.end()).size() == 4);
  const TokenIds small = bigram_ids({5, 6, 5, 6, 6}, 3);
  CHECK(
      std::all_of(small.begin(), small.end(), [](std::int64_t id) { return id == 1 || id == 2; }));
  CHECK(bigram_ids({}, 8).empty());
  CHECK_THROWS_AS(bigram_ids({1}, 1), norma::ValueError);
}
