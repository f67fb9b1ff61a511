#include "imdb/evaluate.h"

#include <cmath>

#include "../support/catch.h"

using namespace imdb;

namespace {

/// Logits in a triangle of +-3 around +-2, some so on the wrong side, all leaning by `lean`.
Evaluation leaning(double lean) {
  Evaluation evaluation;
  for (int i = 0; i < 1000; ++i) {
    const int label = i % 2;
    evaluation.labels.push_back(label);
    const double noise =
        3 * (std::fmod(i * 0.6180339887, 1.0) + std::fmod(i * 0.4142135624, 1.0) - 1);
    evaluation.logits.push_back((label == 1 ? 2.0 : -2.0) + noise + lean);
  }
  return evaluation;
}

}  // namespace

TEST_CASE("the fitted shift takes a lean away") {
  const double straight = fit_logit_shift(leaning(0));
  const double shift = fit_logit_shift(leaning(0.8));
  CHECK(shift - straight == Approx(-0.8).epsilon(0.02));  // the prior holds back a little
  const Evaluation before = shifted(leaning(0.8), 0), after = shifted(leaning(0.8), shift);
  CHECK(after.loss < before.loss);
  CHECK(after.accuracy > before.accuracy);
  CHECK(after.logits[0] == before.logits[0] + shift);
  CHECK(after.confusion.counts[0][0] > before.confusion.counts[0][0]);
}

TEST_CASE("no other shift has less loss") {
  const Evaluation evaluation = leaning(-0.5);
  const double shift = fit_logit_shift(evaluation);
  const auto objective = [&](double b) { return shifted(evaluation, b).loss * 1000 + b * b / 2; };
  CHECK(objective(shift) < objective(shift + 1e-3));
  CHECK(objective(shift) < objective(shift - 1e-3));
}

TEST_CASE("the shift stays finite where the data would not hold it") {
  CHECK(fit_logit_shift({}) == 0.0);
  Evaluation one_class;
  one_class.logits.assign(100, -40.0);
  one_class.labels.assign(100, 1);
  const double shift = fit_logit_shift(one_class);
  CHECK(shift > 0.0);
  CHECK(std::isfinite(shift));
}
