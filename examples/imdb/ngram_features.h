// Binary bag-of-n-grams features of reviews.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "imdb/dataset.h"

namespace imdb {

/// Rows of sorted, distinct feature numbers (CSR): binarized counts, as Wang and Manning use them.
struct FeatureRows {
  std::vector<std::int64_t> begins = {0};  ///< row i is ids[begins[i]] .. ids[begins[i + 1]]
  std::vector<std::int32_t> ids;

  std::int64_t size() const { return static_cast<std::int64_t>(begins.size()) - 1; }
  const std::int32_t* begin(std::int64_t row) const {
    return ids.data() + begins[static_cast<std::size_t>(row)];
  }
  const std::int32_t* end(std::int64_t row) const {
    return ids.data() + begins[static_cast<std::size_t>(row) + 1];
  }
};

/// Numbers the n-grams (1 <= n <= order) of training reviews. An n-gram is known by a 64-bit hash
/// of its words: among ten million of them a collision has odds of about one in 400,000.
class NgramFeatures {
 public:
  /// Throws norma::ValueError unless 1 <= order <= 3.
  explicit NgramFeatures(int order);

  /// Rows of `reviews`, adding the n-grams that are new.
  FeatureRows learn(const std::vector<Review>& reviews);
  /// Rows of `reviews`, leaving out n-grams that `learn` did not see. In parallel.
  FeatureRows look_up(const std::vector<Review>& reviews) const;

  std::int64_t size() const { return static_cast<std::int64_t>(places_.size()); }
  /// The words of one feature, with spaces between; `reviews` as given to `learn`.
  std::string name(std::int32_t feature, const std::vector<Review>& reviews,
                   const Lexicon& words) const;

 private:
  struct Place {  // where the n-gram first came
    std::int32_t review;
    std::int32_t last_word;
    std::int32_t order;
  };
  template <class Visit>
  void for_each_ngram(const Review& review, Visit&& visit) const;
  std::size_t slot(std::uint64_t key) const;
  void grow();

  int order_;
  std::vector<Place> places_;
  std::vector<std::uint64_t> keys_;  // open addressing; 0 is free
  std::vector<std::int32_t> values_;
};

}  // namespace imdb
