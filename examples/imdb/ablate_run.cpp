#include "imdb/ablate_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "imdb/files.h"
#include "imdb/model.h"
#include "imdb/run_error.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

namespace fs = std::filesystem;

constexpr char kResult[] = "result.json";
constexpr char kTests[] = "test.json";  // while it trains: test accuracies by epoch

void check_options(const AblationRun& run, const fs::path& folder) {
  const fs::path file = folder / kConfigFile;
  if (!fs::exists(file)) return;
  const TrainConfig there = read_complete_config(file);
  for (const auto& field : config_fields()) {
    const std::string key = field.key;
    if (key == "data" || key == "device" || key == "threads" || key == "checkpoint_every") continue;
    const auto had = get_field(there, field), has = get_field(run.config, field);
    norma::check(had == has, "ablate",
                 "{} must hold a run with {} = {}; got {}; give another --out", folder.string(),
                 key, has, had);
  }
}

class TestLog {
 public:
  explicit TestLog(const fs::path& folder) : file_(folder / kTests) {
    if (fs::exists(file_)) accuracies_ = nlohmann::json::parse(read_file(file_));
  }
  bool has(std::int64_t epoch) const { return accuracies_.contains(std::to_string(epoch)); }
  std::optional<double> at(std::int64_t epoch) const {
    if (!has(epoch)) return std::nullopt;
    return accuracies_[std::to_string(epoch)].get<double>();
  }
  void add(std::int64_t epoch, double accuracy) {
    accuracies_[std::to_string(epoch)] = accuracy;
    write_file_atomic(file_, accuracies_.dump() + "\n");
  }

 private:
  fs::path file_;
  nlohmann::json accuracies_ = nlohmann::json::object();
};

// After the last epoch, and after each that is the best so far on the development set.
bool wants_test(const TrainState& state, std::int64_t epochs) {
  if (state.epoch == 0 || state.batch != 0) return false;
  const auto& all = state.epochs;
  return state.epoch == epochs ||
         std::all_of(all.begin(), all.end() - 1, [&](const EpochRecord& e) {
           return e.dev_accuracy < all.back().dev_accuracy;
         });
}

// False when stopped.
bool train_epochs(Trainer& trainer, const TrainConfig& config, const BatchSource& test,
                  TestLog& tests, const fs::path& folder, const TrainerHooks& hooks) {
  const TrainState& state = trainer.state();
  const std::int64_t steps = trainer.total_steps() / config.epochs;
  while (true) {
    if (wants_test(state, config.epochs) && !tests.has(state.epoch)) {
      const auto measured = trainer.evaluate_final(test, hooks, "test");
      if (!measured) return false;
      tests.add(state.epoch, measured->accuracy);
      if (hooks.events != nullptr)
        hooks.events->scalar("test/accuracy", measured->accuracy, state.step);
    }
    if (state.epoch == config.epochs) return true;
    TrainerHooks epoch = hooks;
    epoch.last_step = std::min(hooks.last_step, steps * (state.epoch + 1));
    const bool done = trainer.run(folder, epoch) == Outcome::finished;
    if (!done && (state.step >= hooks.last_step || (hooks.interrupted && hooks.interrupted())))
      return false;
  }
}

}  // namespace

std::optional<AblationResult> finished_run(const AblationRun& run, const fs::path& folder) {
  check_options(run, folder);
  if (!fs::exists(folder / kResult)) return std::nullopt;
  return read_ablation_result(folder / kResult);
}

std::int64_t steps_done(const fs::path& folder) {
  const auto checkpoints = list_checkpoints(folder);
  return checkpoints.empty() ? 0 : load_state(checkpoints.back()).step;
}

std::optional<AblationResult> train_run(const AblationRun& run, const RunData& data,
                                        const BatchSource& test, std::int64_t threads,
                                        const fs::path& folder, const TrainerHooks& hooks) {
  make_directories(folder);
  write_file_atomic(folder / kConfigFile, to_toml(run.config));
  Trainer trainer(run.config, data, threads, Stopwatch());
  const auto checkpoints = list_checkpoints(folder);
  if (!checkpoints.empty()) trainer.restore(checkpoints.back());
  TestLog tests(folder);
  EventWriter events(folder / "events", checkpoints.empty() ? 0 : trainer.state().step + 1);
  TrainerHooks own = hooks;
  own.events = &events;

  bool finite = true;
  try {
    if (!train_epochs(trainer, run.config, test, tests, folder, own)) return std::nullopt;
  } catch (const RunError&) {  // a loss or gradient that is not finite
    finite = false;
  }
  if (hooks.progress != nullptr) hooks.progress->finish();

  AblationResult result;
  result.group = run.group.name;
  result.norm = run.group.norm;
  result.placement = run.group.placement;
  result.init = run.group.init;
  result.seed = run.config.seed;
  const TrainState& state = trainer.state();
  result.finite = finite;
  summarize(result, state);
  result.parameters = trainer.model().num_parameters();
  result.dev_reviews = static_cast<std::int64_t>(data.split.dev.size());
  result.test_reviews = test.reviews();
  result.data_hash = state.data_hash;
  for (const auto& record : state.epochs) result.epochs.push_back({record, tests.at(record.epoch)});
  write_file_atomic(folder / kResult, to_json(result));
  std::error_code ignored;  // what is left of them is found by nobody
  fs::remove_all(folder / "checkpoints", ignored);
  fs::remove(folder / kTests, ignored);
  return result;
}

}  // namespace imdb
