#include "imdb/ablate_result.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "imdb/files.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kWindow = 200;  // steps
constexpr double kHighLoss = 1.0;     // nats
constexpr double kChance = 0.55;      // accuracy

std::string failure_of(const TrainState& state, double last_loss, bool finite) {
  if (!finite) return fmt::format("not finite after step {}", state.step);
  if (last_loss > kHighLoss) return fmt::format("loss {:.2f} at the end", last_loss);
  if (!state.epochs.empty() && state.epochs.back().dev_accuracy < kChance)
    return fmt::format("guesses: dev {:.1f} %", 100 * state.epochs.back().dev_accuracy);
  return "";
}

template <class Result, class Visit>
void each_member(Result& r, Visit&& visit) {
  visit("group", r.group);
  visit("norm", r.norm);
  visit("placement", r.placement);
  visit("init", r.init);
  visit("seed", r.seed);
  visit("failure", r.failure);
  visit("finite", r.finite);
  visit("steps", r.steps);
  visit("seconds", r.seconds);
  visit("wobble", r.wobble);
  visit("grad_norm_first", r.grad_norm_first);
  visit("grad_norm_median", r.grad_norm_median);
  visit("grad_norm_max", r.grad_norm_max);
  visit("parameters", r.parameters);
  visit("dev_reviews", r.dev_reviews);
  visit("test_reviews", r.test_reviews);
  visit("data_hash", r.data_hash);
}

template <class Record, class Visit>
void each_figure(Record& r, Visit&& visit) {
  visit("epoch", r.epoch);
  visit("step", r.step);
  visit("train_loss", r.train_loss);
  visit("train_accuracy", r.train_accuracy);
  visit("dev_loss", r.dev_loss);
  visit("dev_accuracy", r.dev_accuracy);
  visit("seconds", r.seconds);
}

}  // namespace

const AblationEpoch* AblationResult::best() const {
  const auto found = std::max_element(
      epochs.begin(), epochs.end(),
      [](const auto& a, const auto& b) { return a.record.dev_accuracy < b.record.dev_accuracy; });
  return found == epochs.end() ? nullptr : &*found;
}

void summarize(AblationResult& result, const TrainState& state) {
  const auto& steps = state.steps;
  result.steps = state.step;
  result.seconds = state.train_seconds;
  const std::size_t count = std::min(steps.size(), kWindow);
  double mean = 0, square = 0;
  for (auto step = steps.end() - static_cast<std::ptrdiff_t>(count); step != steps.end(); ++step) {
    mean += step->loss / static_cast<double>(count);
    square += step->loss * step->loss / static_cast<double>(count);
  }
  result.wobble = std::sqrt(std::max(0.0, square - mean * mean));
  result.failure = failure_of(state, mean, result.finite);
  if (steps.empty()) return;
  std::vector<double> norms;
  for (const auto& step : steps) norms.push_back(step.grad_norm);
  result.grad_norm_first = norms.front();
  const auto middle = norms.begin() + static_cast<std::ptrdiff_t>(norms.size() / 2);
  std::nth_element(norms.begin(), middle, norms.end());
  result.grad_norm_median = *middle;
  result.grad_norm_max = *std::max_element(norms.begin(), norms.end());
}

std::string to_json(const AblationResult& result) {
  Json json = Json::object();
  each_member(result, [&](const char* name, const auto& value) { json[name] = value; });
  json["epochs"] = Json::array();
  for (const auto& [record, test] : result.epochs) {
    Json epoch = Json::object();
    each_figure(record, [&](const char* name, const auto& value) { epoch[name] = value; });
    epoch["test_accuracy"] = test ? Json(*test) : Json();
    json["epochs"].push_back(epoch);
  }
  return json.dump(2) + "\n";
}

AblationResult read_ablation_result(const std::filesystem::path& file) {
  try {
    const Json json = Json::parse(read_file(file));
    AblationResult result;
    each_member(result, [&](const char* name, auto& value) { json.at(name).get_to(value); });
    for (const auto& epoch : json.at("epochs")) {
      AblationEpoch& read = result.epochs.emplace_back();
      each_figure(read.record,
                  [&](const char* name, auto& value) { epoch.at(name).get_to(value); });
      if (!epoch.at("test_accuracy").is_null())
        read.test_accuracy = epoch.at("test_accuracy").get<double>();
    }
    return result;
  } catch (const Json::exception& error) {
    throw norma::FileError("ablate", fmt::format("{} is damaged ({}); remove it to train that run "
                                                 "again",
                                                 file.string(), error.what()));
  }
}

}  // namespace imdb
