#include "imdb/batches.h"

#include <norma/core/error.h>

#include <algorithm>
#include <numeric>

#include "../support/catch.h"
#include "imdb/random.h"

using namespace imdb;

namespace {

TokenIds counting(std::size_t length, std::int64_t first = 10) {
  TokenIds tokens(length);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// Reviews with the spread of lengths of real ones: review i holds tokens that only it has.
BatchSource source(std::int64_t count, BatchOptions options) {
  std::vector<TokenIds> tokens;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto length = 10 + bounded(mix(99, i), 40) + bounded(mix(98, i), 400);
    tokens.push_back(counting(length, 1000 * i + 10));
    labels.push_back(i % 2);
  }
  return BatchSource(tokens, labels, options);
}

bool same(const Batch& a, const Batch& b) {
  return a.tokens == b.tokens && a.mask == b.mask && a.labels == b.labels &&
         a.reviews == b.reviews && a.bigrams == b.bigrams && a.length == b.length;
}

}  // namespace

TEST_CASE("truncation keeps the head and the tail") {
  BatchOptions options;
  options.max_length = 6;
  options.head = 2;
  CHECK(fit_length(counting(6), options) == counting(6));
  CHECK(fit_length(counting(10), options) == TokenIds{10, 11, 16, 17, 18, 19});
  CHECK(fit_length({}, options) == TokenIds{Tokenizer::unk_id});
  options.cls = true;
  CHECK(fit_length(counting(5), options) == TokenIds{2, 10, 11, 12, 13, 14});
  CHECK(fit_length(counting(10), options) == TokenIds{2, 10, 11, 17, 18, 19});
  options.cls = false;
  options.head = 0;
  CHECK(fit_length(counting(10), options) == counting(6, 14));
  options.head = 6;
  CHECK(fit_length(counting(10), options) == counting(6));
}

TEST_CASE("a pass covers each review once, in batches of the fixed size") {
  BatchOptions options;
  options.batch_size = 32;
  const BatchSource reviews = source(1001, options);
  for (const EpochOrder& order : {reviews.shuffled(1, 0), reviews.sorted()}) {
    REQUIRE(static_cast<std::int64_t>(order.batches.size()) == reviews.batches());
    std::vector<std::int32_t> seen;
    int smaller = 0;
    for (const auto& batch : order.batches) {
      seen.insert(seen.end(), batch.begin(), batch.end());
      smaller += batch.size() != 32;
    }
    CHECK(smaller == 1);
    std::sort(seen.begin(), seen.end());
    std::vector<std::int32_t> all(1001);
    std::iota(all.begin(), all.end(), 0);
    CHECK(seen == all);
  }
}

TEST_CASE("a batch is a pure function of seed, epoch and index") {
  BatchOptions options;
  options.batch_size = 16;
  options.bigram_buckets = 1000;
  const BatchSource reviews = source(200, options);
  const EpochOrder order = reviews.shuffled(7, 3);
  const EpochOrder again = source(200, options).shuffled(7, 3);
  CHECK(order.batches == again.batches);
  for (std::int64_t index : {12, 0, 5})
    CHECK(same(reviews.batch(order, index, 0.3), reviews.batch(again, index, 0.3)));
  CHECK(reviews.shuffled(7, 4).batches != order.batches);
  CHECK(reviews.shuffled(8, 3).batches != order.batches);
  CHECK(reviews.shuffled(7, 4).key != order.key);
}

TEST_CASE("the hash of a source sees each token, each label and the order") {
  const std::vector<TokenIds> tokens = {{5, 6, 7}, {8, 9}, {10}};
  const auto hash = [](const std::vector<TokenIds>& rows, std::vector<std::int64_t> labels) {
    return BatchSource(rows, std::move(labels), {}).hash();
  };
  const auto expected = hash(tokens, {0, 1, 1});
  CHECK(hash(tokens, {0, 1, 1}) == expected);
  CHECK(hash(tokens, {1, 0, 1}) != expected);
  CHECK(hash({{5, 7, 6}, {8, 9}, {10}}, {0, 1, 1}) != expected);
  CHECK(hash({{8, 9}, {5, 6, 7}, {10}}, {1, 0, 1}) != expected);
  CHECK(hash({{5, 6}, {7, 8, 9}, {10}}, {0, 1, 1}) != expected);
  CHECK(hash({{5, 6, 7}, {8, 9}}, {0, 1}) != expected);
}

TEST_CASE("batches are padded little, to a multiple of 8 and never above the longest allowed") {
  BatchOptions options;
  options.max_length = 250;
  const BatchSource reviews = source(6400, options);
  const EpochOrder order = reviews.shuffled(1, 0);
  std::int64_t cells = 0, real = 0, longest = 0;
  for (std::int64_t i = 0; i < reviews.batches(); ++i) {
    const Batch batch = reviews.batch(order, i);
    REQUIRE((batch.length % 8 == 0 || batch.length == 250));
    REQUIRE(std::accumulate(batch.mask.begin(), batch.mask.end(), std::int64_t{0}) ==
            batch.real_tokens);
    cells += batch.size * batch.length;
    real += batch.real_tokens;
    longest = std::max(longest, batch.length);
  }
  CHECK(longest == 250);
  CHECK(static_cast<double>(cells - real) / static_cast<double>(cells) < 0.05);

  // Short and long batches must not come in order.
  int rises = 0;
  for (std::int64_t i = 1; i < reviews.batches(); ++i)
    rises += reviews.batch(order, i).length > reviews.batch(order, i - 1).length;
  CHECK(rises > 20);
  CHECK(rises < 80);
}

TEST_CASE("rows hold tokens, then padding; labels and indices follow their review") {
  BatchOptions options;
  options.batch_size = 4;
  options.bigram_buckets = 50;
  options.cls = true;
  const BatchSource reviews = source(40, options);
  const EpochOrder order = reviews.shuffled(1, 0);
  for (std::int64_t b = 0; b < reviews.batches(); ++b) {
    const Batch batch = reviews.batch(order, b);
    REQUIRE(batch.tokens.size() == static_cast<std::size_t>(batch.size * batch.length));
    for (std::int64_t r = 0; r < batch.size; ++r) {
      const auto review = batch.reviews[static_cast<std::size_t>(r)];
      REQUIRE(batch.labels[static_cast<std::size_t>(r)] == review % 2);
      TokenIds row, bigrams;
      for (std::int64_t i = 0; i < batch.length; ++i) {
        const auto at = static_cast<std::size_t>(r * batch.length + i);
        if (batch.mask[at]) {
          REQUIRE(static_cast<std::int64_t>(row.size()) == i);  // no hole
          row.push_back(batch.tokens[at]);
          bigrams.push_back(batch.bigrams[at]);
        } else {
          REQUIRE(batch.tokens[at] == Tokenizer::pad_id);
          REQUIRE(batch.bigrams[at] == 0);
        }
      }
      REQUIRE(row[0] == Tokenizer::cls_id);
      REQUIRE(row[1] == 1000 * review + 10);
      REQUIRE(bigrams == bigram_ids(row, 50));
    }
  }
}

TEST_CASE("word dropout drops its share, spares CLS, and bigrams see it") {
  BatchOptions options;
  options.cls = true;
  options.bigram_buckets = 1 << 16;
  const BatchSource reviews = source(512, options);
  const EpochOrder order = reviews.shuffled(1, 0);
  std::int64_t dropped = 0, all = 0;
  for (std::int64_t b = 0; b < reviews.batches(); ++b) {
    const Batch batch = reviews.batch(order, b, 0.3);
    for (std::int64_t r = 0; r < batch.size; ++r) {
      TokenIds row, bigrams;
      for (std::int64_t i = 0; i < batch.length; ++i) {
        const auto at = static_cast<std::size_t>(r * batch.length + i);
        if (!batch.mask[at]) break;
        row.push_back(batch.tokens[at]);
        bigrams.push_back(batch.bigrams[at]);
      }
      REQUIRE(row[0] == Tokenizer::cls_id);
      REQUIRE(bigrams == bigram_ids(row, 1 << 16));
      dropped += std::count(row.begin(), row.end(), Tokenizer::unk_id);
      all += static_cast<std::int64_t>(row.size()) - 1;
    }
  }
  CHECK(static_cast<double>(dropped) / static_cast<double>(all) == Approx(0.3).margin(0.01));
  CHECK_FALSE(same(reviews.batch(order, 0, 0.3), reviews.batch(order, 0)));
  EpochOrder other = order;
  other.key = reviews.shuffled(1, 1).key;
  CHECK_FALSE(same(reviews.batch(order, 0, 0.3), reviews.batch(other, 0, 0.3)));
}

TEST_CASE("a batch of texts to predict keeps their order") {
  const Batch batch = make_batch({counting(9), counting(3), {}}, {});
  CHECK(batch.size == 3);
  CHECK(batch.length == 16);
  CHECK(batch.reviews == std::vector<std::int32_t>{0, 1, 2});
  CHECK(batch.labels == std::vector<std::int64_t>{-1, -1, -1});
  CHECK(batch.tokens[32] == Tokenizer::unk_id);
  CHECK(batch.real_tokens == 13);
}

TEST_CASE("impossible batches are refused") {
  BatchOptions options;
  options.head = 300;
  CHECK_THROWS_AS(source(4, options), norma::ValueError);
  options = {};
  options.batch_size = 0;
  CHECK_THROWS_AS(source(4, options), norma::ValueError);
  options = {};
  options.bigram_buckets = 1;
  CHECK_THROWS_AS(source(4, options), norma::ValueError);
  CHECK_THROWS_AS(BatchSource({{1}}, {}, {}), norma::ValueError);
  const BatchSource reviews = source(4, {});
  CHECK_THROWS_AS(reviews.batch(reviews.sorted(), 1), norma::IndexError);
  CHECK_THROWS_AS(reviews.batch(reviews.sorted(), 0, 1.0), norma::ValueError);
}
