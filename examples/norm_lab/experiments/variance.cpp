// R24: four ways to compute a variance in float32, far from zero.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/norm.h"

#include <cmath>

namespace norm_lab {

using namespace norma;

namespace {

using Row_ = std::vector<float>;
using Method = float (*)(const Row_&);

/// E[x²] − E[x]².
float one_pass(const Row_& x) {
  float sum = 0.0F, squares = 0.0F;
  for (const float value : x) {
    sum += value;
    squares += value * value;
  }
  const auto n = static_cast<float>(x.size());
  return squares / n - (sum / n) * (sum / n);
}

/// The mean first, then the squared distances from it.
float two_pass(const Row_& x) {
  const auto n = static_cast<float>(x.size());
  float sum = 0.0F, squares = 0.0F;
  for (const float value : x) sum += value;
  for (const float value : x) squares += (value - sum / n) * (value - sum / n);
  return squares / n;
}

struct Running {
  float count = 0.0F, mean = 0.0F, squares = 0.0F;
  /// Welford 1962.
  void take(float value) {
    count += 1.0F;
    const float distance = value - mean;
    mean += distance / count;
    squares += distance * (value - mean);
  }
  /// Chan, Golub, LeVeque 1983.
  void merge(const Running& other) {
    const float total = count + other.count, distance = other.mean - mean;
    mean += distance * other.count / total;
    squares += other.squares + distance * distance * count * other.count / total;
    count = total;
  }
};

float welford(const Row_& x) {
  Running all;
  for (const float value : x) all.take(value);
  return all.squares / all.count;
}

/// Welford in 32 lanes, as the threads of a warp do it, merged in a tree.
float chan(const Row_& x) {
  std::vector<Running> lanes(32);
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i % lanes.size()].take(x[i]);
  for (std::size_t step = lanes.size() / 2; step > 0; step /= 2)
    for (std::size_t i = 0; i < step; ++i) lanes[i].merge(lanes[i + step]);
  return lanes[0].squares / lanes[0].count;
}

double exact(const Row_& x) {
  double sum = 0.0, squares = 0.0;
  for (const float value : x) sum += value;
  const double center = sum / static_cast<double>(x.size());
  for (const float value : x) squares += (value - center) * (value - center);
  return squares / static_cast<double>(x.size());
}

struct Worst {
  double error = 0.0;                                       // relative
  double lowest = std::numeric_limits<double>::infinity();  // variance
};

Worst worst(Method method, const std::vector<Row_>& rows) {
  Worst result;
  for (const Row_& row : rows) {
    const double variance = method(row);
    result.error = std::max(result.error, std::abs(variance - exact(row)) / exact(row));
    result.lowest = std::min(result.lowest, variance);
  }
  return result;
}

std::vector<Row_> rows_at(double offset, std::uint64_t seed) {
  manual_seed(seed);
  const Tensor x = randn({200, 512}) + offset;
  std::vector<Row_> rows;
  for (std::int64_t i = 0; i < x.size(0); ++i) rows.push_back(x[i].to_vector<float>());
  return rows;
}

}  // namespace

Result variance(const Settings& settings) {
  const std::vector<std::pair<const char*, Method>> methods = {
      {"one pass, E[x²] − E[x]²", one_pass},
      {"two passes", two_pass},
      {"Welford", welford},
      {"Chan, 32 lanes", chan}};
  const std::vector<double> offsets = {1, 10, 100, 1e3, 1e4};
  Chart chart{.title = "Error of the variance",
              .x_label = "mean of the row (standard deviation 1)",
              .y_label = "relative error, worst of 200 rows",
              .log_x = true,
              .log_y = true};
  std::vector<std::vector<Worst>> all;  // by method, then offset
  for (const auto& [name, method] : methods) {
    Series series{name, offsets, {}};
    all.emplace_back();
    for (const double offset : offsets) {
      all.back().push_back(worst(method, rows_at(offset, settings.seed)));
      series.y.push_back(all.back().back().error);
    }
    chart.series.push_back(series);
  }
  const auto& [one, two, sequential, lanes] = std::tie(all[0], all[1], all[2], all[3]);
  manual_seed(settings.seed);
  const Tensor far = randn({200, 512}) + 1e4;
  const double kernel =
      difference(layer_norm(far, {512}), layer_norm(far.to(float64), {512}).to(float32));
  return {
      .claim =
          "A variance in one pass is wrong far from zero, even negative; Welford's method is "
          "the stable one, better than two passes.",
      .source = "R24; the third article, whose “Welford” code is a plain two-pass",
      .setting = "rows of 512 values of N(offset, 1), float32 sums, against float64",
      .rows = {{"one pass at 1e3: lowest variance", at_most(0), one[3].lowest},
               {"Welford at 1e4: relative error", at_most(0.01), sequential[4].error},
               {"two passes at 1e4 / Welford: error", at_least(1.0),
                two[4].error / sequential[4].error},
               {"one pass at 100", within_factor(0.024, 4), one[2].error, Tests::reference},
               {"two passes at 1e3", within_factor(6e-6, 8), two[3].error, Tests::reference},
               {"two passes at 1e4", within_factor(1.2e-4, 8), two[4].error, Tests::reference},
               {"Welford at 1e4", within_factor(9e-4, 5), sequential[4].error, Tests::reference},
               {"layer_norm at 1e4: largest error of an output", at_most(5e-3), kernel,
                Tests::reference}},
      .depends_on =
          "whether the row can be read twice: one pass is as bad as claimed and Welford is "
          "stable, but two passes over a row that stays in registers are better still",
      .finding =
          "Welford and Chan are for where one pass is forced, as between blocks or machines. "
          "norma's kernels take two passes over a row that they hold.",
      .charts = {chart}};
}

}  // namespace norm_lab
