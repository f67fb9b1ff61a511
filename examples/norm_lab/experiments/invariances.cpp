// R18: what each norm does not see. Each cell of the table is computed, none is copied.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/ops/batch_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/linear.h"
#include "norma/ops/norm.h"

#include <array>
#include <functional>

namespace norm_lab {

using namespace norma;

namespace {

constexpr std::int64_t kIn = 24, kOut = 32, kSamples = 40;

/// A layer with a norm: samples and weights to outputs.
using NormedLayer = std::function<Tensor(const Tensor& x, const Tensor& w)>;

struct Case {
  const char* norm;
  NormedLayer layer;
  const char* expected;  // a letter for each change below: y or n
};

/// Changes the samples, or the weights; only samples past `from` must give what they gave.
struct Change {
  const char* name;
  std::function<void(Tensor& x, Tensor& w)> apply;
};

std::vector<Change> changes() {
  const Tensor shift_in = randn({kIn}, {.dtype = float64});
  return {
      {"weight matrix re-scaled", [](Tensor&, Tensor& w) { w = w * 3.0; }},
      {"weight matrix re-centred", [=](Tensor&, Tensor& w) { w = w + shift_in; }},
      {"weight vector re-scaled", [](Tensor&, Tensor& w) { w.narrow(0, 5, 1).mul_(3.0); }},
      {"data set re-scaled", [](Tensor& x, Tensor&) { x = x * 3.0; }},
      {"data set re-centred", [=](Tensor& x, Tensor&) { x = x + shift_in; }},
      {"one sample re-scaled", [](Tensor& x, Tensor&) { x.narrow(0, 7, 1).mul_(3.0); }},
  };
}

std::vector<Case> cases() {
  const auto rows = [](auto norm) -> NormedLayer {
    return [norm](const Tensor& x, const Tensor& w) { return norm(linear(x, w)); };
  };
  const NormOptions exact{.eps = 0.0};
  return {{"BatchNorm",
           rows([](const Tensor& y) { return batch_norm(y, {}, {}, {}, {}, true, 0.1, 0.0); }),
           "ynyyyn"},
          {"WeightNorm", [](const Tensor& x, const Tensor& w) { return linear(x, normalize(w)); },
           "ynynnn"},
          {"LayerNorm", rows([](const Tensor& y) { return layer_norm(y, {kOut}, {}, {}, 0.0); }),
           "yynyny"},
          {"RMSNorm", rows([](const Tensor& y) { return rms_norm(y, {kOut}, {}, 0.0); }), "ynnyny"},
          {"pRMSNorm",
           rows([exact](const Tensor& y) { return p_rms_norm(y, 0.25, {}, {}, exact); }), "ynnyny"},
          {"ScaleNorm",
           rows([](const Tensor& y) { return scale_norm(y, ones({1}, {.dtype = float64}), 0.0); }),
           "ynnyny"}};
}

}  // namespace

Result invariances(const Settings& settings) {
  manual_seed(settings.seed);
  const Tensor x = randn({kSamples, kIn}, {.dtype = float64}) + 0.5;
  const Tensor w = randn({kOut, kIn}, {.dtype = float64});
  const std::vector<Change> all_changes = changes();

  Result result{
      .claim =
          "Each norm leaves the output as it is under the changes that the table of the "
          "RMSNorm paper names, and under no other.",
      .source =
          "R18; Zhang and Sennrich 2019, README of bzhangGo/rmsnorm. ScaleNorm is not in "
          "their table; it is RMSNorm with one gain",
      .setting =
          "y = norm(W x), 40 samples, 24 → 32, float64, eps 0; invariant: no output moves by "
          "more than 1e-9",
      .finding =
          "LayerNorm alone survives a re-centring of the weights, BatchNorm alone one of the "
          "data; the re-scaling of one sample is what all norms of rows are for."};
  Table table{.title = "Measured: does the output stay?", .columns = {"norm"}};
  for (const Change& change : all_changes) table.columns.emplace_back(change.name);
  for (const Case& one : cases()) {
    const Tensor before = one.layer(x, w);
    std::vector<std::string> cells = {one.norm};
    int as_expected = 0;
    for (std::size_t i = 0; i < all_changes.size(); ++i) {
      Tensor changed_x = x.clone(), changed_w = w.clone();
      all_changes[i].apply(changed_x, changed_w);
      const bool invariant = difference(one.layer(changed_x, changed_w), before) < 1e-9;
      as_expected += invariant == (one.expected[i] == 'y');
      cells.emplace_back(invariant ? "✓" : "✗");
    }
    table.rows.push_back(cells);
    result.rows.push_back({std::string(one.norm) + ": cells as in the paper's table, of 6",
                           near(6, 0), static_cast<double>(as_expected),
                           one.norm == std::string("ScaleNorm") ? Tests::reference : Tests::claim});
  }
  result.tables = {table};
  Chart chart{.kind = ChartKind::bars,
              .title = "How many of the six changes each norm does not see",
              .x_label = "norm",
              .y_label = "changes"};
  Series counts{"measured", {}, {}};
  for (const auto& row : table.rows) {
    chart.categories.push_back(row[0]);
    counts.y.push_back(static_cast<double>(std::count(row.begin(), row.end(), std::string("✓"))));
  }
  chart.series = {counts};
  result.charts = {chart};
  return result;
}

}  // namespace norm_lab
