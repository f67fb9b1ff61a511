#include "imdb/train_state.h"

#include <nlohmann/json.hpp>

#include "norma/core/error.h"

namespace imdb {
namespace {

using Json = nlohmann::ordered_json;
constexpr char kFormat[] = "norma imdb checkpoint";
constexpr int kVersion = 3;

// One place that names each member; `visit` is called with a name and a reference.
template <class State, class Visit>
void each_scalar(State& s, Visit&& visit) {
  visit("step", s.step);
  visit("epoch", s.epoch);
  visit("batch", s.batch);
  visit("tokens", s.tokens);
  visit("train_seconds", s.train_seconds);
  visit("total_seconds", s.total_seconds);
  visit("epoch_seconds", s.epoch_seconds);
  visit("loss_sum", s.loss_sum);
  visit("correct", s.correct);
  visit("seen", s.seen);
  visit("logit_shift", s.logit_shift);
  visit("rng_seed", s.rng_seed);
  visit("rng_offset", s.rng_offset);
  visit("vocabulary", s.vocabulary);
  visit("tokenizer_hash", s.tokenizer_hash);
  visit("train_reviews", s.train_reviews);
  visit("data_hash", s.data_hash);
  visit("threads", s.threads);
  visit("data_name", s.data_name);
}

template <class Record, class Visit>
void each_step_column(Record& r, Visit&& visit) {
  visit("step", r.step);
  visit("loss", r.loss);
  visit("accuracy", r.accuracy);
  visit("lr", r.lr);
  visit("grad_norm", r.grad_norm);
}

template <class Record, class Visit>
void each_epoch_column(Record& r, Visit&& visit) {
  visit("epoch", r.epoch);
  visit("step", r.step);
  visit("train_loss", r.train_loss);
  visit("train_accuracy", r.train_accuracy);
  visit("dev_loss", r.dev_loss);
  visit("dev_accuracy", r.dev_accuracy);
  visit("seconds", r.seconds);
}

// Columns instead of rows: a third of the text.
template <class Record, class Each>
Json columns(const std::vector<Record>& records, Each each) {
  Json json = Json::object();
  const Record names;
  each(names, [&](const char* name, const auto&) { json[name] = Json::array(); });
  for (const auto& record : records)
    each(record, [&](const char* name, const auto& value) { json[name].push_back(value); });
  return json;
}

template <class Record, class Each>
std::vector<Record> records(const Json& json, Each each) {
  std::vector<Record> result(json.at("step").size());
  for (std::size_t i = 0; i < result.size(); ++i)
    each(result[i], [&](const char* name, auto& value) { json.at(name).at(i).get_to(value); });
  return result;
}

constexpr auto kEachStep = [](auto& record, auto visit) { each_step_column(record, visit); };
constexpr auto kEachEpoch = [](auto& record, auto visit) { each_epoch_column(record, visit); };

}  // namespace

std::string to_json(const TrainState& state) {
  Json json = {{"format", kFormat}, {"version", kVersion}};
  each_scalar(state, [&](const char* name, const auto& value) { json[name] = value; });
  json["epochs"] = columns(state.epochs, kEachEpoch);
  json["steps"] = columns(state.steps, kEachStep);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

TrainState train_state_from_json(std::string_view text, const std::string& file) {
  using norma::FileError;
  try {
    const Json json = Json::parse(text);
    norma::check<FileError>(json.is_object() && json.value("format", "") == kFormat, "checkpoint",
                            "{} must be the state of an imdb run; got something else", file);
    const int version = json.at("version").get<int>();
    norma::check<FileError>(version == kVersion, "checkpoint",
                            "{}: version must be {}; got {}; use the program that wrote it", file,
                            kVersion, version);
    TrainState state;
    each_scalar(state, [&](const char* name, auto& value) { json.at(name).get_to(value); });
    state.epochs = records<EpochRecord>(json.at("epochs"), kEachEpoch);
    state.steps = records<StepRecord>(json.at("steps"), kEachStep);
    norma::check<FileError>(state.step >= 0 && state.epoch >= 0 && state.batch >= 0, "checkpoint",
                            "{}: counters must not be negative", file);
    return state;
  } catch (const Json::exception& error) {
    throw FileError("checkpoint", fmt::format("{} is damaged: {}", file, error.what()));
  }
}

}  // namespace imdb
