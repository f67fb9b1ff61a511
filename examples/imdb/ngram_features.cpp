#include "imdb/ngram_features.h"

#include <norma/core/error.h>

#include <algorithm>

#include "imdb/random.h"

namespace imdb {
namespace {

void append_row(FeatureRows& rows, std::vector<std::int32_t>& row) {
  std::sort(row.begin(), row.end());
  row.erase(std::unique(row.begin(), row.end()), row.end());
  rows.ids.insert(rows.ids.end(), row.begin(), row.end());
  rows.begins.push_back(static_cast<std::int64_t>(rows.ids.size()));
}

}  // namespace

NgramFeatures::NgramFeatures(int order) : order_(order) {
  norma::check(order >= 1 && order <= 3, "baseline", "n-grams must have 1 to 3 words; got {}",
               order);
}

template <class Visit>
void NgramFeatures::for_each_ngram(const Review& review, Visit&& visit) const {
  const auto& words = review.words;
  for (std::size_t last = 0; last < words.size(); ++last) {
    std::uint64_t key = 0;
    for (int n = 1; n <= order_ && static_cast<std::size_t>(n) <= last + 1; ++n) {
      key = mix(key ^ (words[last + 1 - static_cast<std::size_t>(n)] + 1));
      visit(key | 1, static_cast<std::int32_t>(last), n);  // never 0
    }
  }
}

std::size_t NgramFeatures::slot(std::uint64_t key) const {
  const std::size_t mask = keys_.size() - 1;
  std::size_t i = (key >> 1) & mask;
  while (keys_[i] != 0 && keys_[i] != key) i = (i + 1) & mask;
  return i;
}

void NgramFeatures::grow() {
  std::vector<std::uint64_t> keys(std::max<std::size_t>(1 << 16, keys_.size() * 2));
  std::vector<std::int32_t> values(keys.size());
  keys.swap(keys_);
  values.swap(values_);
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i] != 0) {
      const std::size_t at = slot(keys[i]);
      keys_[at] = keys[i];
      values_[at] = values[i];
    }
}

FeatureRows NgramFeatures::learn(const std::vector<Review>& reviews) {
  FeatureRows rows;
  std::vector<std::int32_t> row;
  for (std::size_t r = 0; r < reviews.size(); ++r) {
    row.clear();
    for_each_ngram(reviews[r], [&](std::uint64_t key, std::int32_t last, int n) {
      if (places_.size() * 2 >= keys_.size()) grow();
      const std::size_t at = slot(key);
      if (keys_[at] == 0) {
        keys_[at] = key;
        values_[at] = static_cast<std::int32_t>(places_.size());
        places_.push_back({static_cast<std::int32_t>(r), last, n});
      }
      row.push_back(values_[at]);
    });
    append_row(rows, row);
  }
  return rows;
}

FeatureRows NgramFeatures::look_up(const std::vector<Review>& reviews) const {
  std::vector<std::vector<std::int32_t>> found(reviews.size());
  const auto count = static_cast<std::int64_t>(reviews.size());
#pragma omp parallel for schedule(dynamic, 64)
  for (std::int64_t i = 0; i < count; ++i) {
    auto& row = found[static_cast<std::size_t>(i)];
    if (keys_.empty()) continue;
    for_each_ngram(reviews[static_cast<std::size_t>(i)], [&](std::uint64_t key, std::int32_t, int) {
      const std::size_t at = slot(key);
      if (keys_[at] != 0) row.push_back(values_[at]);
    });
  }
  FeatureRows rows;
  for (auto& row : found) append_row(rows, row);
  return rows;
}

std::string NgramFeatures::name(std::int32_t feature, const std::vector<Review>& reviews,
                                const Lexicon& words) const {
  const Place& place = places_.at(static_cast<std::size_t>(feature));
  const auto& review = reviews.at(static_cast<std::size_t>(place.review)).words;
  std::string name;
  for (std::int32_t i = place.last_word - place.order + 1; i <= place.last_word; ++i) {
    if (!name.empty()) name += ' ';
    name += words[review.at(static_cast<std::size_t>(i))];
  }
  return name;
}

}  // namespace imdb
