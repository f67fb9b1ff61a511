#include "imdb/batches.h"

#include <norma/core/error.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "imdb/random.h"

namespace imdb {

using norma::check;
using norma::IndexError;

namespace {

constexpr std::int64_t kLengthMultiple = 8;  // whole vector registers and cache lines
constexpr std::int64_t kPoolBatches = 50;

// Streams of random numbers that must not coincide.
constexpr std::uint64_t kReviewOrder = 1, kBatchOrder = 2, kWordDropout = 3;

void check_options(const BatchOptions& o) {
  check(o.batch_size >= 1, "batches", "batch_size must be at least 1; got {}", o.batch_size);
  check(o.max_length >= (o.cls ? 2 : 1), "batches", "max_length must be at least {}; got {}",
        o.cls ? 2 : 1, o.max_length);
  check(o.head >= 0 && o.head <= o.max_length - o.cls, "batches",
        "head must be in [0, {}] (max_length{}); got {}", o.max_length - o.cls,
        o.cls ? " without CLS" : "", o.head);
  check(o.bigram_buckets == 0 || o.bigram_buckets >= 2, "batches",
        "bigram_buckets must be 0 or at least 2; got {}", o.bigram_buckets);
}

std::vector<std::vector<std::int32_t>> cut(const std::vector<std::int32_t>& order,
                                           std::int64_t batch_size) {
  std::vector<std::vector<std::int32_t>> batches;
  const auto step = static_cast<std::size_t>(batch_size);
  for (std::size_t begin = 0; begin < order.size(); begin += step) {
    const std::size_t end = std::min(order.size(), begin + step);
    batches.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                         order.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return batches;
}

}  // namespace

TokenIds fit_length(const TokenIds& tokens, const BatchOptions& options) {
  check_options(options);
  TokenIds row;
  if (options.cls) row.push_back(Tokenizer::cls_id);
  const auto room = static_cast<std::size_t>(options.max_length - options.cls);
  if (tokens.empty()) {
    row.push_back(Tokenizer::unk_id);
  } else if (tokens.size() <= room) {
    row.insert(row.end(), tokens.begin(), tokens.end());
  } else {
    const auto head = static_cast<std::ptrdiff_t>(options.head);
    const auto tail = static_cast<std::ptrdiff_t>(room) - head;
    row.insert(row.end(), tokens.begin(), tokens.begin() + head);
    row.insert(row.end(), tokens.end() - tail, tokens.end());
  }
  return row;
}

BatchSource::BatchSource(const std::vector<TokenIds>& tokens, std::vector<std::int64_t> labels,
                         BatchOptions options)
    : labels_(std::move(labels)), options_(options) {
  check_options(options_);
  check(tokens.size() == labels_.size(), "batches",
        "each review must have a label; got {} reviews and {} labels", tokens.size(),
        labels_.size());
  rows_.reserve(tokens.size());
  for (const TokenIds& review : tokens) {
    const TokenIds row = fit_length(review, options_);
    rows_.emplace_back(row.begin(), row.end());
  }
}

std::int64_t BatchSource::batches() const {
  return (reviews() + options_.batch_size - 1) / options_.batch_size;
}

std::uint64_t BatchSource::hash() const {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    hash = mix(hash ^ static_cast<std::uint64_t>(labels_[i]));
    for (const std::int32_t token : rows_[i]) hash = mix(hash ^ static_cast<std::uint64_t>(token));
    hash = mix(hash ^ rows_[i].size());
  }
  return hash;
}

EpochOrder BatchSource::shuffled(std::uint64_t seed, std::int64_t epoch) const {
  const auto e = static_cast<std::uint64_t>(epoch);
  std::vector<std::int32_t> order(rows_.size());
  std::iota(order.begin(), order.end(), 0);
  shuffle(order, mix(seed, e, kReviewOrder));
  const auto shorter = [&](std::int32_t a, std::int32_t b) {
    return rows_[static_cast<std::size_t>(a)].size() < rows_[static_cast<std::size_t>(b)].size();
  };
  const std::int64_t pool = kPoolBatches * options_.batch_size;
  for (std::int64_t begin = 0; begin < reviews(); begin += pool)
    std::stable_sort(order.begin() + begin, order.begin() + std::min(reviews(), begin + pool),
                     shorter);
  EpochOrder result{cut(order, options_.batch_size), mix(seed, e, kWordDropout)};
  shuffle(result.batches, mix(seed, e, kBatchOrder));
  return result;
}

EpochOrder BatchSource::sorted() const {
  std::vector<std::int32_t> order(rows_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return rows_[static_cast<std::size_t>(a)].size() < rows_[static_cast<std::size_t>(b)].size();
  });
  return {cut(order, options_.batch_size), 0};
}

Batch BatchSource::batch(const EpochOrder& order, std::int64_t index, double word_dropout) const {
  check<IndexError>(index >= 0 && index < static_cast<std::int64_t>(order.batches.size()),
                    "batches", "batch index must be in [0, {}); got {}", order.batches.size(),
                    index);
  check(word_dropout >= 0 && word_dropout < 1, "batches", "word_dropout must be in [0, 1); got {}",
        word_dropout);
  Batch batch;
  batch.reviews = order.batches[static_cast<std::size_t>(index)];
  batch.size = static_cast<std::int64_t>(batch.reviews.size());
  std::size_t longest = 0;
  for (std::int32_t review : batch.reviews) {
    check<IndexError>(review >= 0 && review < reviews(), "batches",
                      "the order must be one of this source; got review {} of {}", review,
                      reviews());
    longest = std::max(longest, rows_[static_cast<std::size_t>(review)].size());
  }
  const std::int64_t rounded = (static_cast<std::int64_t>(longest) + kLengthMultiple - 1) /
                               kLengthMultiple * kLengthMultiple;
  batch.length = std::min(options_.max_length, rounded);

  const auto cells = static_cast<std::size_t>(batch.size * batch.length);
  batch.tokens.assign(cells, Tokenizer::pad_id);
  batch.mask.assign(cells, 0);
  if (options_.bigram_buckets) batch.bigrams.assign(cells, 0);
  TokenIds row;
  std::ptrdiff_t at = 0;
  for (std::int32_t review : batch.reviews) {
    const auto& source = rows_[static_cast<std::size_t>(review)];
    row.assign(source.begin(), source.end());
    for (std::size_t i = options_.cls; word_dropout > 0 && i < row.size(); ++i)
      if (uniform(mix(order.key, review, i)) < word_dropout) row[i] = Tokenizer::unk_id;
    std::copy(row.begin(), row.end(), batch.tokens.begin() + at);
    std::fill_n(batch.mask.begin() + at, row.size(), std::uint8_t{1});
    if (options_.bigram_buckets) {
      const TokenIds bigrams = bigram_ids(row, options_.bigram_buckets);
      std::copy(bigrams.begin(), bigrams.end(), batch.bigrams.begin() + at);
    }
    batch.labels.push_back(labels_[static_cast<std::size_t>(review)]);
    batch.real_tokens += static_cast<std::int64_t>(row.size());
    at += batch.length;
  }
  return batch;
}

Batch make_batch(const std::vector<TokenIds>& tokens, const BatchOptions& options) {
  BatchOptions one = options;
  one.batch_size = std::max<std::int64_t>(1, static_cast<std::int64_t>(tokens.size()));
  const BatchSource source(tokens, std::vector<std::int64_t>(tokens.size(), -1), one);
  EpochOrder order;
  order.batches.emplace_back(tokens.size());
  std::iota(order.batches[0].begin(), order.batches[0].end(), 0);
  return source.batch(order, 0);
}

BatchSource make_source(const std::vector<TokenIds>& encoded, const std::vector<Review>& reviews,
                        const std::vector<std::int32_t>& indices, const BatchOptions& options) {
  std::vector<TokenIds> tokens;
  std::vector<std::int64_t> labels;
  for (std::int32_t i : indices) {
    tokens.push_back(encoded.at(static_cast<std::size_t>(i)));
    labels.push_back(reviews.at(static_cast<std::size_t>(i)).label);
  }
  return BatchSource(tokens, std::move(labels), options);
}

BatchSource make_source(const std::vector<TokenIds>& encoded, const std::vector<Review>& reviews,
                        const BatchOptions& options) {
  std::vector<std::int64_t> labels;
  for (const Review& review : reviews) labels.push_back(review.label);
  return BatchSource(encoded, std::move(labels), options);
}

}  // namespace imdb
