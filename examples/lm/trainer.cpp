#include "lm/trainer.h"

#include <cmath>

#include "imdb/checkpoint.h"
#include "imdb/files.h"
#include "imdb/run_error.h"
#include "imdb/words.h"
#include "lm/checkpoint.h"
#include "norma/core/grad_mode.h"
#include "norma/core/random.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduction.h"
#include "norma/optim/clip_grad.h"
#include "norma/optim/weight_decay_groups.h"

namespace lm {
namespace {

namespace fs = std::filesystem;
namespace nn = norma::nn;
namespace optim = norma::optim;
using norma::Tensor;

constexpr std::size_t kCheckpointsKept = 2;
constexpr char kOptimizer[] = "optimizer.";
constexpr char kSchedule[] = "schedule.";

/// How many tokens but the first of each row are the most probable ones.
std::int64_t count_correct(const Tensor& logits, const Tensor& tokens) {
  const norma::NoGradGuard no_grad;
  const std::int64_t predicted = tokens.size(1) - 1;
  const Tensor best = argmax(logits.detach().narrow(1, 0, predicted), -1);
  return (best == tokens.narrow(1, 1, predicted)).to(norma::int64).sum().item<std::int64_t>();
}

}  // namespace

std::optional<Evaluation> evaluate(
    nn::CausalLM& model, const Rows& rows, const norma::Device& device,
    const std::function<bool(std::int64_t, std::int64_t)>& on_batch) {
  const norma::NoGradGuard no_grad;
  const bool training = model.is_training();
  model.eval();
  Evaluation result;
  std::int64_t correct = 0;
  const auto order = rows.in_order();
  const std::int64_t batches = rows.batches();
  std::int64_t done = 0;
  for (bool goes_on = true; goes_on && done < batches;) {
    const Tensor tokens = rows.batch(order, done).to(device);
    const Tensor logits = model(tokens);
    const std::int64_t predicted = tokens.size(0) * (tokens.size(1) - 1);
    result.loss += nn::next_token_loss(logits, tokens).item() * static_cast<double>(predicted);
    correct += count_correct(logits, tokens);
    result.tokens += predicted;
    goes_on = on_batch(++done, batches);
  }
  model.train(training);
  if (done < batches) return std::nullopt;
  result.loss /= static_cast<double>(result.tokens);
  result.accuracy = static_cast<double>(correct) / static_cast<double>(result.tokens);
  return result;
}

Trainer::Trainer(const Config& config, const TrainData& data, std::int64_t threads,
                 const imdb::Stopwatch& session)
    : config_(config),
      data_(data),
      device_(norma::Device::parse(config.device)),
      session_(session) {
  norma::manual_seed(static_cast<std::uint64_t>(config.seed));
  model_ = std::make_unique<nn::CausalLM>(model_config(config, data.tokenizer->vocab_size()));
  model_->to(device_);
  make_optimizer();
  state_.vocabulary = data.tokenizer->vocab_size();
  state_.tokenizer_hash = imdb::hash_bytes(data.tokenizer->model());
  state_.train_reviews = data.train.rows();
  state_.data_hash = data.hash;
  state_.threads = threads;
  state_.data_name = data.name;
}

void Trainer::make_optimizer() {
  parameters_ = model_->parameters();
  optimizer_ = std::make_unique<optim::AdamW>(
      optim::weight_decay_groups(*model_, config_.weight_decay),
      optim::AdamWOptions{
          .lr = config_.lr, .betas = {0.9, config_.beta2}, .weight_decay = config_.weight_decay});
  schedule_ = std::make_unique<optim::LRScheduler>(
      *optimizer_,
      // A run of a few steps cannot afford the whole warm-up.
      optim::cosine_schedule({.warmup_steps = std::min(config_.warmup_steps, total_steps() / 2),
                              .total_steps = total_steps(),
                              .min_ratio = config_.min_lr_ratio}));
}

Outcome Trainer::run(const fs::path& run, const TrainerHooks& hooks) {
  run_ = run;
  while (state_.epoch < config_.epochs) {
    const bool whole_epoch = run_epoch(hooks) && finish_epoch(hooks);
    save();
    if (!whole_epoch || (state_.epoch < config_.epochs && must_stop(hooks)))
      return Outcome::stopped;
  }
  return Outcome::finished;
}

bool Trainer::must_stop(const TrainerHooks& hooks) const {
  return state_.step >= hooks.last_step || (hooks.interrupted && hooks.interrupted());
}

// False when it was asked to stop before the end.
bool Trainer::run_epoch(const TrainerHooks& hooks) {
  const auto order = data_.train.shuffled(static_cast<std::uint64_t>(config_.seed), state_.epoch);
  const std::int64_t batches = data_.train.batches();
  bool whole = true;
  while (whole && state_.batch < batches) {
    const imdb::Stopwatch watch;
    train_step(data_.train.batch(order, state_.batch).to(device_), hooks);
    const double seconds = watch.seconds();
    state_.train_seconds += seconds;
    state_.epoch_seconds += seconds;
    session_seconds_ += seconds;
    if (hooks.progress != nullptr) show_progress(*hooks.progress);
    whole = state_.batch == batches || !must_stop(hooks);
  }
  if (hooks.progress != nullptr) hooks.progress->finish();
  return whole;
}

void Trainer::train_step(const Tensor& tokens, const TrainerHooks& hooks) {
  model_->train();
  optimizer_->zero_grad();
  const Tensor logits = (*model_)(tokens);
  const Tensor loss = nn::next_token_loss(logits, tokens);
  imdb::StepRecord record;
  record.loss = loss.item();
  check_finite("the loss", record.loss);
  loss.backward();
  const double limit =
      config_.clip_norm > 0 ? config_.clip_norm : std::numeric_limits<double>::infinity();
  record.grad_norm = optim::clip_grad_norm_(parameters_, limit).item();
  check_finite("the gradient norm", record.grad_norm);
  record.lr = schedule_->get_last_lr().front();
  optimizer_->step();
  schedule_->step();

  const std::int64_t predicted = tokens.size(0) * (tokens.size(1) - 1);
  const std::int64_t correct = count_correct(logits, tokens);
  record.accuracy = static_cast<double>(correct) / static_cast<double>(predicted);
  record.step = ++state_.step;
  ++state_.batch;
  state_.loss_sum += record.loss * static_cast<double>(predicted);
  state_.correct += correct;
  state_.seen += predicted;
  state_.tokens += predicted;
  session_tokens_ += predicted;
  ++session_steps_;
  state_.steps.push_back(record);
  if (hooks.events == nullptr) return;
  hooks.events->scalar("train/loss", record.loss, state_.step);
  hooks.events->scalar("train/accuracy", record.accuracy, state_.step);
  hooks.events->scalar("train/learning_rate", record.lr, state_.step);
  hooks.events->scalar("train/gradient_norm", record.grad_norm, state_.step);
  hooks.events->scalar("train/tokens_per_second", tokens_per_second(), state_.step);
}

void Trainer::show_progress(imdb::Progress& progress) const {
  const double step_seconds = session_seconds_ / static_cast<double>(session_steps_);
  progress.update(
      {.label = fmt::format("epoch {}/{}", state_.epoch + 1, config_.epochs),
       .done = state_.batch,
       .total = data_.train.batches(),
       .loss = state_.loss_sum / static_cast<double>(state_.seen),
       .accuracy = static_cast<double>(state_.correct) / static_cast<double>(state_.seen),
       .tokens_per_second = tokens_per_second(),
       .eta_seconds = step_seconds * static_cast<double>(total_steps() - state_.step)});
}

// False when it was asked to stop before the end: then the epoch stays open, all its batches done,
// and the next session measures it.
bool Trainer::finish_epoch(const TrainerHooks& hooks) {
  const imdb::Stopwatch watch;
  const auto dev =
      evaluate(*model_, data_.dev, device_, [&](std::int64_t done, std::int64_t total) {
        if (hooks.progress != nullptr && hooks.progress->is_terminal())
          hooks.progress->update({.label = "dev", .done = done, .total = total});
        return !hooks.interrupted || !hooks.interrupted();
      });
  if (hooks.progress != nullptr) hooks.progress->finish();
  state_.train_seconds += watch.seconds();
  state_.epoch_seconds += watch.seconds();
  if (!dev) return false;
  check_finite("the dev loss", dev->loss);
  imdb::EpochRecord record;
  record.epoch = ++state_.epoch;
  record.step = state_.step;
  record.train_loss = state_.loss_sum / static_cast<double>(state_.seen);
  record.train_accuracy = static_cast<double>(state_.correct) / static_cast<double>(state_.seen);
  record.dev_loss = dev->loss;
  record.dev_accuracy = dev->accuracy;
  record.seconds = state_.epoch_seconds;
  state_.epochs.push_back(record);
  state_.batch = 0;
  state_.epoch_seconds = 0;
  state_.loss_sum = 0;
  state_.correct = 0;
  state_.seen = 0;
  if (hooks.events != nullptr) {
    hooks.events->scalar("dev/loss", dev->loss, state_.step);
    hooks.events->scalar("dev/perplexity", std::exp(dev->loss), state_.step);
    hooks.events->scalar("dev/accuracy", dev->accuracy, state_.step);
    hooks.events->flush();
  }
  if (hooks.progress != nullptr)
    hooks.progress->message(fmt::format(
        "epoch {}/{}: train loss {:.4f}; dev loss {:.4f}, perplexity {:.1f}, accuracy {:.2f} %; {}",
        record.epoch, config_.epochs, record.train_loss, record.dev_loss, std::exp(record.dev_loss),
        100 * record.dev_accuracy, imdb::format_duration(record.seconds)));
  return true;
}

double Trainer::tokens_per_second() const {
  return session_seconds_ > 0 ? static_cast<double>(session_tokens_) / session_seconds_ : 0;
}

void Trainer::check_finite(const char* what, double value) const {
  if (std::isfinite(value)) return;
  throw imdb::RunError(
      "train",
      fmt::format("{} must be finite; got {} after {} steps; try a smaller --lr (now {}), a "
                  "longer --warmup-steps (now {}) or --clip-norm 1",
                  what, value, state_.step, config_.lr, config_.warmup_steps));
}

void Trainer::save() {
  const auto rng = norma::default_generator(device_).get_state();
  state_.rng_seed = rng.seed;
  state_.rng_offset = rng.offset;
  state_.total_seconds = total_seconds();
  imdb::write_checkpoint_folder(run_, state_.step, kCheckpointsKept, [&](const fs::path& folder) {
    imdb::save_tensors(imdb::module_tensors(*model_), folder / imdb::kModelFile);
    imdb::TensorMap training = optim::with_prefix(optimizer_->state_dict(), kOptimizer);
    training.merge(optim::with_prefix(schedule_->state_dict(), kSchedule));
    imdb::save_tensors(training, folder / imdb::kOptimizerFile);
    imdb::write_file_atomic(folder / imdb::kConfigFile, to_toml(config_));
    imdb::write_file_atomic(folder / kTokenizerFile, data_.tokenizer->model());
    imdb::write_file_atomic(folder / imdb::kStateFile, imdb::to_json(state_));
  });
}

void Trainer::restore(const fs::path& checkpoint) {
  imdb::TrainState state = imdb::load_state(checkpoint);
  norma::check<norma::ValueError>(
      state.data_hash == state_.data_hash && state.vocabulary == state_.vocabulary, "checkpoint",
      "--resume needs the text it was trained on ({}); got {}, which differs", state.data_name,
      state_.data_name);
  norma::check<norma::ValueError>(
      state.epoch < config_.epochs || (state.epoch == config_.epochs && state.batch == 0),
      "checkpoint", "--epochs must not be less than what is done ({}); got {}", state.epoch,
      config_.epochs);
  const fs::path weights = checkpoint / imdb::kModelFile;
  imdb::load_into(*model_, imdb::load_tensors(weights), weights);
  const fs::path path = checkpoint / imdb::kOptimizerFile;
  const imdb::TensorMap training = imdb::load_tensors(path);
  try {
    optimizer_->load_state_dict(optim::without_prefix(training, kOptimizer));
    schedule_->load_state_dict(optim::without_prefix(training, kSchedule));
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

}  // namespace lm
