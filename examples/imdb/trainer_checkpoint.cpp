// What of a Trainer goes into a checkpoint, and back.
#include "imdb/checkpoint.h"
#include "imdb/files.h"
#include "imdb/trainer.h"
#include "norma/core/random.h"

namespace imdb {
namespace {

namespace fs = std::filesystem;
namespace optim = norma::optim;

constexpr std::size_t kCheckpointsKept = 2;
constexpr char kOptimizer[] = "optimizer.";
constexpr char kSchedule[] = "schedule.";
constexpr char kAverageUpdates[] = "average.updates";

}  // namespace

void Trainer::save() {
  const auto rng = norma::default_generator(device_).get_state();
  state_.rng_seed = rng.seed;
  state_.rng_offset = rng.offset;
  state_.total_seconds = total_seconds();
  write_checkpoint_folder(run_, state_.step, kCheckpointsKept, [&](const fs::path& folder) {
    save_tensors(module_tensors(*model_), folder / kModelFile);
    TensorMap training = optim::with_prefix(optimizer_->state_dict(), kOptimizer);
    training.merge(optim::with_prefix(schedule_->state_dict(), kSchedule));
    if (average_) {
      training.emplace(kAverageUpdates, average_->state_dict().at("updates"));
      const auto averaged = average_->apply();
      save_tensors(module_tensors(*model_), folder / kAverageFile);
    }
    save_tensors(training, folder / kOptimizerFile);
    write_file_atomic(folder / kConfigFile, to_toml(config_));
    write_file_atomic(folder / kTokenizerFile, tokenizer_->save());
    write_file_atomic(folder / kStateFile, to_json(state_));
  });
}

void Trainer::restore(const fs::path& checkpoint) {
  TrainState state = load_state(checkpoint);
  norma::check(
      state.data_hash == state_.data_hash && state.vocabulary == state_.vocabulary, "checkpoint",
      "--resume needs the data it was trained on ({}, {} training reviews); got {} with {}{}",
      state.data_name, state.train_reviews, state_.data_name, source_.reviews(),
      state.train_reviews == source_.reviews() ? ", which differ" : "");
  norma::check(state.epoch < config_.epochs || (state.epoch == config_.epochs && state.batch == 0),
               "checkpoint", "--epochs must not be less than what is done ({}); got {}",
               state.epoch, config_.epochs);
  load_into(*model_, load_tensors(checkpoint / kModelFile), checkpoint / kModelFile);
  const auto path = checkpoint / kOptimizerFile;
  const TensorMap training = load_tensors(path);
  try {
    optimizer_->load_state_dict(optim::without_prefix(training, kOptimizer));
    schedule_->load_state_dict(optim::without_prefix(training, kSchedule));
    if (average_) restore_average(checkpoint, training);
  } catch (const norma::ValueError& error) {
    throw norma::ValueError(
        "checkpoint", fmt::format("{} does not fit this model: {}", path.string(), error.what()));
  }
  norma::default_generator(device_).set_state({state.rng_seed, state.rng_offset});
  former_seconds_ = state.total_seconds;
  state.threads = state_.threads;
  state.data_name = state_.data_name;
  state_ = std::move(state);
}

// The average is kept as a model, by name; the EMA numbers its tensors.
void Trainer::restore_average(const fs::path& checkpoint, const TensorMap& training) {
  const TensorMap named = load_tensors(checkpoint / kAverageFile);
  const auto find = [&](const TensorMap& tensors, const std::string& name) {
    const auto found = tensors.find(name);
    norma::check(found != tensors.end(), "checkpoint", "the average lacks \"{}\"", name);
    return found->second;
  };
  optim::StateDict state = {{"updates", find(training, kAverageUpdates)}};
  std::size_t index = 0;
  for (const auto& parameter : model_->named_parameters())
    state.emplace(fmt::format("average.{}", index++), find(named, parameter.name));
  average_->load_state_dict(state);
}

}  // namespace imdb
