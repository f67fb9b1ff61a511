#include "imdb/baseline.h"

#include <norma/core/error.h>

#include <algorithm>
#include <cmath>

#include "../support/catch.h"
#include "imdb/linear_svm.h"
#include "imdb/ngram_features.h"
#include "imdb/random.h"
#include "real_data.h"

using namespace imdb;

namespace {

void add(Dataset& dataset, std::vector<Review>& side, const std::string& text, int label) {
  Review review;
  review.text = text;
  review.id = static_cast<std::int32_t>(side.size());
  review.label = static_cast<std::int16_t>(label);
  for (const std::string& word : split_words(text)) review.words.push_back(dataset.words.add(word));
  side.push_back(std::move(review));
}

}  // namespace

TEST_CASE("n-gram features are distinct, sorted, named, and unknown ones are left out") {
  Dataset dataset;
  add(dataset, dataset.train, "not good not good", 0);
  add(dataset, dataset.train, "good", 1);
  add(dataset, dataset.test, "good not bad", 1);
  NgramFeatures features(2);
  const FeatureRows train = features.learn(dataset.train);
  REQUIRE(features.size() == 4);
  REQUIRE(train.size() == 2);
  CHECK(train.end(0) - train.begin(0) == 4);
  CHECK(std::is_sorted(train.begin(0), train.end(0)));
  std::vector<std::string> names;
  for (std::int32_t j = 0; j < 4; ++j)
    names.push_back(features.name(j, dataset.train, dataset.words));
  CHECK(names == std::vector<std::string>{"not", "good", "not good", "good not"});
  const FeatureRows test = features.look_up(dataset.test);
  CHECK(std::vector<std::int32_t>(test.begin(0), test.end(0)) ==
        std::vector<std::int32_t>{0, 1, 3});
  CHECK_THROWS_AS(NgramFeatures(4), norma::ValueError);
}

TEST_CASE("the SVM solves its problem: the gradient of the primal vanishes") {
  FeatureRows rows;
  std::vector<std::int8_t> labels;
  std::vector<std::int32_t> subset;
  constexpr std::int32_t kRows = 60, kFeatures = 12;
  for (std::int32_t i = 0; i < kRows; ++i) {
    for (std::int32_t j = 0; j < kFeatures; ++j)
      if (uniform(mix(1, i, j)) < 0.4) rows.ids.push_back(j);
    rows.begins.push_back(static_cast<std::int64_t>(rows.ids.size()));
    labels.push_back(uniform(mix(2, i)) < 0.5);
    if (i % 6 != 0) subset.push_back(i);
  }
  std::vector<float> scales;
  for (std::int32_t j = 0; j < kFeatures; ++j)
    scales.push_back(0.5f + static_cast<float>(uniform(mix(3, j))));
  SvmOptions options;
  options.cost = 0.7;
  options.max_passes = 5000;
  options.tolerance = 1e-6;
  const LinearModel model = train_svm(rows, labels, subset, scales, options);

  std::vector<double> gradient(kFeatures);
  for (std::size_t j = 0; j < kFeatures; ++j)
    gradient[j] = static_cast<double>(model.weights[j]) / static_cast<double>(scales[j]);
  double bias_gradient = static_cast<double>(model.bias);
  for (std::int32_t i : subset) {
    const double y = labels[static_cast<std::size_t>(i)] ? 1 : -1;
    const double pull = 2 * options.cost * std::max(0.0, 1 - y * model.score(rows, i)) * y;
    for (const std::int32_t* id = rows.begin(i); id != rows.end(i); ++id)
      gradient[static_cast<std::size_t>(*id)] -=
          pull * static_cast<double>(scales[static_cast<std::size_t>(*id)]);
    bias_gradient -= pull;
  }
  for (double g : gradient) CHECK(g == Approx(0).margin(1e-4));
  CHECK(bias_gradient == Approx(0).margin(1e-4));
  CHECK(std::abs(model.weights[0]) > 1e-3);
}

TEST_CASE("the baseline finds the words that decide") {
  Dataset dataset;
  for (int i = 0; i < 200; ++i) {
    const std::string noise = " w" + std::to_string(mix(5, i) % 40) + " x" + std::to_string(i);
    add(dataset, i < 120 ? dataset.train : dataset.test,
        (i % 2 ? "truly great" : "truly awful") + noise, i % 2);
  }
  const BaselineResult result = train_baseline(dataset);
  CHECK(result.test_accuracy == 1);
  CHECK(result.dev_accuracy == 1);
  CHECK_FALSE(result.dev_by_movie);
  CHECK(result.grid.size() == 25);
  const auto first_two = [](const std::vector<BaselineResult::Feature>& top) {
    return std::vector<std::string>{std::min(top[0].ngram, top[1].ngram),
                                    std::max(top[0].ngram, top[1].ngram)};
  };
  CHECK(first_two(result.top_positive) == std::vector<std::string>{"great", "truly great"});
  CHECK(first_two(result.top_negative) == std::vector<std::string>{"awful", "truly awful"});
  REQUIRE(result.predictions.size() == 80);
  for (const auto& p : result.predictions) {
    REQUIRE(p.label == dataset.test[static_cast<std::size_t>(p.review)].label);
    REQUIRE(p.predicted == (p.score > 0));
  }
}

TEST_CASE("the baseline on the built-in sample beats chance by far, and repeats") {
  const Dataset sample = read_sample();
  BaselineOptions options;
  options.costs = {0.03, 0.3};
  const BaselineResult result = train_baseline(sample, options);
  CHECK(result.test_accuracy > 0.78);
  CHECK(train_baseline(sample, options).test_accuracy == result.test_accuracy);
}

TEST_CASE("impossible baselines are refused") {
  const Dataset sample = read_sample();
  BaselineOptions options;
  options.ngram = 0;
  CHECK_THROWS_AS(train_baseline(sample, options), norma::ValueError);
  options = {};
  options.dev_fraction = 0;
  CHECK_THROWS_AS(train_baseline(sample, options), norma::ValueError);
  options = {};
  options.costs = {-1};
  CHECK_THROWS_AS(train_baseline(sample, options), norma::ValueError);
  options = {};
  options.alpha = 0;
  CHECK_THROWS_AS(train_baseline(sample, options), norma::ValueError);
}

TEST_CASE("the baseline reaches 91 % on the official test set", "[real]") {
  const char* path = real_data();
  if (path == nullptr) return;
  const BaselineResult result = train_baseline(read_dataset(path));
  CHECK(result.dev_by_movie);
  CHECK(result.test_accuracy >= 0.91);
  CHECK(result.train_seconds < 60);
}
