#include "imdb/ablate_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "imdb/progress.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNormal = 1.959964;  // quantile 0.975

// Quantile 0.975 of Student's t; beyond the table to within a hundredth.
double student(std::size_t freedom) {
  constexpr std::array<double, 10> table = {12.706, 4.303, 3.182, 2.776, 2.571,
                                            2.447,  2.365, 2.306, 2.262, 2.228};
  return freedom <= table.size() ? table[freedom - 1]
                                 : kNormal + 2.5 / static_cast<double>(freedom);
}

// The figures of a group's runs. Accuracies are those of the runs that reached the end.
struct GroupFigures {
  std::size_t runs = 0, trained = 0;
  std::vector<std::string> failures;  // "seed 2: not finite after step 57"
  Estimate wobble, train_last, dev_best, dev_last, test_best, test_last;
  Estimate grad_first, grad_median, grad_max;
  std::int64_t parameters = 0;
};

GroupFigures figures_of(const AblationReport& report, const std::string& group) {
  GroupFigures g;
  std::int64_t test_reviews = 0, dev_reviews = 0;
  std::vector<double> wobble, train_last, dev_best, dev_last, test_best, test_last;
  std::vector<double> first, median, largest;
  for (const auto& r : report.results) {
    if (r.group != group) continue;
    ++g.runs;
    g.parameters = r.parameters;
    test_reviews = r.test_reviews;
    first.push_back(r.grad_norm_first);
    median.push_back(r.grad_norm_median);
    largest.push_back(r.grad_norm_max);
    wobble.push_back(r.wobble);
    if (r.trained())
      ++g.trained;
    else
      g.failures.push_back(fmt::format("seed {}: {}", r.seed, r.failure));
    if (!r.finite || r.epochs.empty()) continue;
    train_last.push_back(r.last()->record.train_accuracy);
    dev_best.push_back(r.best()->record.dev_accuracy);
    dev_last.push_back(r.last()->record.dev_accuracy);
    if (r.best()->test_accuracy) test_best.push_back(*r.best()->test_accuracy);
    if (r.last()->test_accuracy) test_last.push_back(*r.last()->test_accuracy);
    dev_reviews = r.dev_reviews;
  }
  g.wobble = mean_of(wobble);
  g.grad_first = mean_of(first);
  g.grad_median = mean_of(median);
  g.grad_max = mean_of(largest);
  g.train_last = mean_of(train_last);
  g.dev_best = accuracy_of(dev_best, dev_reviews);
  g.dev_last = accuracy_of(dev_last, dev_reviews);
  g.test_best = accuracy_of(test_best, test_reviews);
  g.test_last = accuracy_of(test_last, test_reviews);
  return g;
}

std::string percent(const Estimate& e) {
  if (e.count == 0) return "–";
  return fmt::format("{:.1f} ± {:.1f} %", 100 * e.mean, 100 * e.half_width);
}

std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f} %", 100 * *value) : "–";
}

std::string number(const Estimate& e) { return e.count == 0 ? "–" : fmt::format("{:.3g}", e.mean); }

std::string describe(const AblationGroup& group) {
  if (group.norm == "none") return fmt::format("no norm, {} start", group.init);
  return fmt::format("{}, {}{}", group.norm, group.placement,
                     group.init == "default" ? "" : ", " + group.init + " start");
}

// Each group of the grid once, in its order.
std::vector<AblationGroup> groups_of(const AblationGrid& grid) {
  std::vector<AblationGroup> groups;
  for (const auto& run : grid.runs) {
    bool known = false;
    for (const auto& group : groups) known = known || group.name == run.group.name;
    if (!known) groups.push_back(run.group);
  }
  return groups;
}

std::string group_table(const AblationReport& report) {
  std::string text =
      "| group | | trained | wobble | gradient norm: first, median, largest | train, last epoch | "
      "dev, best epoch | dev, last | test, best epoch | test, last | the article |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& group : groups_of(report.grid)) {
    const GroupFigures g = figures_of(report, group.name);
    if (g.runs == 0) continue;
    text += fmt::format(
        "| {} | {} | {} of {} | ± {} | {}, {}, {} | {} | {} | {} | {} | {} | {} |\n", group.name,
        describe(group), g.trained, g.runs, number(g.wobble), number(g.grad_first),
        number(g.grad_median), number(g.grad_max),
        g.train_last.count == 0 ? "–" : fmt::format("{:.1f} %", 100 * g.train_last.mean),
        percent(g.dev_best), percent(g.dev_last), percent(g.test_best), percent(g.test_last),
        group.article.empty() ? "–" : group.article);
  }
  return text;
}

std::string run_table(const AblationReport& report) {
  std::string text =
      "| run | outcome | steps | wobble | gradient norm: first, median, largest | dev by epoch | "
      "test, best epoch | test, last | training |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& r : report.results) {
    std::string dev;
    for (const auto& epoch : r.epochs)
      dev += fmt::format("{}{:.1f}", dev.empty() ? "" : " ", 100 * epoch.record.dev_accuracy);
    const auto test = [](const AblationEpoch* epoch) {
      return epoch == nullptr ? std::nullopt : epoch->test_accuracy;
    };
    text += fmt::format(
        "| {} seed {} | {} | {} | ± {:.3g} | {:.3g}, {:.3g}, {:.3g} | {} | {} | {} "
        "| {} |\n",
        r.group, r.seed, r.trained() ? "trained" : r.failure, r.steps, r.wobble, r.grad_norm_first,
        r.grad_norm_median, r.grad_norm_max, dev, percent(test(r.best())), percent(test(r.last())),
        format_duration(r.seconds));
  }
  return text;
}

constexpr char kNotes[] =
    "Wobble: standard deviation of the training loss over the last 200 steps. A run did not train "
    "when a loss or gradient\nwas not finite, when the training loss of its last 200 steps is "
    "above "
    "1, or when the development accuracy ends below\n55 %. Accuracies are means over the runs that "
    "reached their end, trained or not. ±: 95 % interval from the scatter of\nthe seeds (Student's "
    "t) and the number of reviews (binomial), in quadrature; of one seed the latter alone. The "
    "best\n"
    "epoch is chosen on the development set. The article says ± 0.1 of the loss of A, ± 1.5 of B, "
    "± 0.8 of C, and neither\nB's initial values nor whether C's statistics hold the padding.\n";

Json to_json(const Estimate& e) {
  if (e.count == 0) return nullptr;
  return {{"mean", e.mean}, {"half_width_95", e.half_width}, {"runs", e.count}};
}

}  // namespace

Estimate mean_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() == 1) return {mean, 0.0, 1};
  double square = 0;
  for (const double value : values) square += (value - mean) * (value - mean);
  const double error = std::sqrt(square / (count - 1) / count);
  return {mean, student(values.size() - 1) * error, values.size()};
}

Estimate accuracy_of(const std::vector<double>& accuracies, std::int64_t reviews) {
  Estimate e = mean_of(accuracies);
  if (e.count == 0) return e;
  const double binomial =
      kNormal *
      std::sqrt(e.mean * (1 - e.mean) / static_cast<double>(std::max<std::int64_t>(1, reviews)));
  e.half_width = std::hypot(e.half_width, binomial);
  return e;
}

std::string to_markdown(const AblationReport& report) {
  std::string text = "# Norms and their places, on the IMDb reviews\n\n";
  for (const auto& [name, value] : report.facts) text += fmt::format("- {}: {}\n", name, value);
  text += fmt::format("- runs: {} of {} done\n\n", report.results.size(), report.grid.runs.size());
  return text + group_table(report) + "\n" + kNotes + "\n" + run_table(report);
}

std::string to_json(const AblationReport& report) {
  Json json = {{"facts", Json::object()}, {"groups", Json::array()}, {"runs", Json::array()}};
  for (const auto& [name, value] : report.facts) json["facts"][name] = value;
  json["runs_planned"] = report.grid.runs.size();
  for (const auto& group : groups_of(report.grid)) {
    const GroupFigures g = figures_of(report, group.name);
    json["groups"].push_back({{"group", group.name},
                              {"norm", group.norm},
                              {"placement", group.placement},
                              {"init", group.init},
                              {"article", group.article},
                              {"runs", g.runs},
                              {"trained", g.trained},
                              {"failures", g.failures},
                              {"parameters", g.parameters},
                              {"wobble", to_json(g.wobble)},
                              {"grad_norm_first", to_json(g.grad_first)},
                              {"grad_norm_median", to_json(g.grad_median)},
                              {"grad_norm_max", to_json(g.grad_max)},
                              {"train_last", to_json(g.train_last)},
                              {"dev_best", to_json(g.dev_best)},
                              {"dev_last", to_json(g.dev_last)},
                              {"test_best", to_json(g.test_best)},
                              {"test_last", to_json(g.test_last)}});
  }
  for (const auto& result : report.results) json["runs"].push_back(Json::parse(to_json(result)));
  return json.dump(2) + "\n";
}

}  // namespace imdb
