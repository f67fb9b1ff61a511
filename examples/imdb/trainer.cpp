#include "imdb/trainer.h"

#include <cmath>
#include <limits>

#include "imdb/model.h"
#include "imdb/run_error.h"
#include "imdb/words.h"
#include "norma/core/random.h"
#include "norma/nn/weight_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/optim/clip_grad.h"
#include "norma/optim/weight_decay_groups.h"

namespace imdb {
namespace {

namespace nn = norma::nn;
namespace optim = norma::optim;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::int64_t count_correct(const norma::Tensor& logits, const std::vector<std::int64_t>& labels) {
  const auto values = logits.detach().to_vector<float>();
  std::int64_t correct = 0;
  for (std::size_t i = 0; i < labels.size(); ++i)
    correct += (values[2 * i + 1] >= values[2 * i] ? 1 : 0) == labels[i];
  return correct;
}

}  // namespace

Trainer::Trainer(const TrainConfig& config, const RunData& data, std::int64_t threads,
                 const Stopwatch& session)
    : config_(config),
      device_(norma::Device::parse(config.device)),
      source_(data.train_source(make_batch_options(config))),
      dev_(data.dev_source(make_batch_options(config))),
      tokenizer_(data.tokenizer),
      loss_({}, -100, config.label_smoothing),
      session_(session) {
  norma::manual_seed(static_cast<std::uint64_t>(config.seed));
  model_ = make_model(config, tokenizer_->vocab_size(), device_);
  keep_on_sphere();
  make_optimizer();
  state_.vocabulary = tokenizer_->vocab_size();
  state_.tokenizer_hash = hash_bytes(tokenizer_->save());
  state_.train_reviews = source_.reviews();
  state_.data_hash = source_.hash();
  state_.threads = threads;
  state_.data_name = data.name;
}

void Trainer::make_optimizer() {
  parameters_ = model_->parameters();
  const auto groups = optim::weight_decay_groups(*model_, config_.weight_decay,
                                                 {.decay_embeddings = config_.decay_embeddings});
  optimizer_ = std::make_unique<optim::AdamW>(
      groups, optim::AdamWOptions{.lr = config_.lr,
                                  .betas = {config_.beta1, config_.beta2},
                                  .eps = config_.eps,
                                  .weight_decay = config_.weight_decay});
  optim::ScheduleOptions schedule;
  schedule.total_steps = total_steps();
  // A run of a few steps cannot afford the whole warm-up.
  schedule.warmup_steps = std::min(config_.warmup_steps, total_steps() / 2);
  schedule.decay_steps = total_steps() / 5;
  schedule_ = std::make_unique<optim::LRScheduler>(
      *optimizer_, optim::make_schedule(config_.schedule, schedule));
  // Warmed up: a plain average would still hold half of the initial weights after epoch 1.
  if (config_.ema_decay > 0)
    average_ = std::make_unique<optim::EMA>(
        parameters_, optim::EMAOptions{.decay = config_.ema_decay, .warmup = true});
}

Outcome Trainer::run(const std::filesystem::path& folder, const TrainerHooks& hooks) {
  run_ = folder;
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
  const EpochOrder order = source_.shuffled(static_cast<std::uint64_t>(config_.seed), state_.epoch);
  const std::int64_t batches = source_.batches();
  while (state_.batch < batches) {
    const Stopwatch watch;
    const Batch batch = source_.batch(order, state_.batch, config_.word_dropout);
    const StepResult result = train_step(batch);
    ++state_.step;
    ++state_.batch;
    const double seconds = watch.seconds();
    state_.train_seconds += seconds;
    state_.epoch_seconds += seconds;
    session_seconds_ += seconds;
    record_step(result, hooks);
    if (state_.batch == batches) break;  // what is due is due after the development evaluation
    if (must_stop(hooks)) {
      if (hooks.progress != nullptr) hooks.progress->finish();
      return false;
    }
    if (config_.checkpoint_every > 0 && state_.step % config_.checkpoint_every == 0) save();
  }
  if (hooks.progress != nullptr) hooks.progress->finish();
  return true;
}

Trainer::StepResult Trainer::train_step(const Batch& batch) {
  const BatchTensors tensors = to_tensors(batch, device_);
  model_->train();
  optimizer_->zero_grad();
  const norma::Tensor logits = (*model_)(tensors.tokens, tensors.padding_mask, tensors.bigrams);
  const norma::Tensor loss = loss_(logits, tensors.labels);
  StepResult result;
  result.loss = loss.item();
  check_finite("the loss", result.loss);
  const norma::Tensor penalty = norma::nn::norm_penalty(*model_);  // RegularizedBN's
  (penalty.defined() ? loss + penalty : loss).backward();
  const double limit = config_.clip_norm > 0 ? config_.clip_norm : kNoLimit;
  result.grad_norm = optim::clip_grad_norm_(parameters_, limit).item();
  check_finite("the gradient norm", result.grad_norm);
  result.lr = schedule_->get_last_lr().front();
  optimizer_->step();
  keep_on_sphere();
  schedule_->step();
  if (average_) average_->update();
  result.correct = count_correct(logits, batch.labels);
  result.size = batch.size;
  result.tokens = batch.real_tokens;
  return result;
}

void Trainer::keep_on_sphere() {
  if (model_->config.encoder.placement == norma::nn::NormPlacement::ngpt)
    norma::nn::normalize_matrices_(*model_);
}

void Trainer::record_step(const StepResult& result, const TrainerHooks& hooks) {
  const double accuracy = static_cast<double>(result.correct) / static_cast<double>(result.size);
  state_.loss_sum += result.loss * static_cast<double>(result.size);
  state_.correct += result.correct;
  state_.seen += result.size;
  state_.tokens += result.tokens;
  session_tokens_ += result.tokens;
  ++session_steps_;
  state_.steps.push_back({state_.step, result.loss, accuracy, result.lr, result.grad_norm});
  if (hooks.events != nullptr) {
    hooks.events->scalar("train/loss", result.loss, state_.step);
    hooks.events->scalar("train/accuracy", accuracy, state_.step);
    hooks.events->scalar("train/learning_rate", result.lr, state_.step);
    hooks.events->scalar("train/gradient_norm", result.grad_norm, state_.step);
    hooks.events->scalar("train/tokens_per_second", tokens_per_second(), state_.step);
  }
  if (hooks.progress != nullptr) show_progress(*hooks.progress);
}

void Trainer::show_progress(Progress& progress) const {
  const double step_seconds = session_seconds_ / static_cast<double>(session_steps_);
  ProgressState shown;
  shown.label = fmt::format("epoch {}/{}", state_.epoch + 1, config_.epochs);
  shown.done = state_.batch;
  shown.total = source_.batches();
  shown.loss = state_.loss_sum / static_cast<double>(state_.seen);
  shown.accuracy = static_cast<double>(state_.correct) / static_cast<double>(state_.seen);
  shown.tokens_per_second = tokens_per_second();
  shown.eta_seconds = step_seconds * static_cast<double>(total_steps() - state_.step);
  progress.update(shown);
}

// False when it was asked to stop before the end: then the epoch stays open, all its batches done,
// and the next session measures it.
bool Trainer::finish_epoch(const TrainerHooks& hooks) {
  const Stopwatch watch;
  std::optional<Evaluation> dev = measure(dev_, hooks, "dev");
  const double seconds = watch.seconds();
  state_.train_seconds += seconds;
  state_.epoch_seconds += seconds;
  if (!dev) return false;
  if (config_.fit_shift) {
    state_.logit_shift = fit_logit_shift(*dev);
    dev = shifted(*dev, state_.logit_shift);
  }
  EpochRecord record;
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
    hooks.events->scalar("dev/accuracy", dev->accuracy, state_.step);
    hooks.events->flush();
  }
  if (hooks.progress != nullptr)
    hooks.progress->message(fmt::format(
        "epoch {}/{}: train loss {:.4f}, accuracy {:.2f} %; dev loss {:.4f}, accuracy {:.2f} %; {}",
        record.epoch, config_.epochs, record.train_loss, 100 * record.train_accuracy,
        record.dev_loss, 100 * record.dev_accuracy, format_duration(record.seconds)));
  return true;
}

std::optional<Evaluation> Trainer::evaluate_final(const BatchSource& source,
                                                  const TrainerHooks& hooks,
                                                  const std::string& label) {
  const auto result = measure(source, hooks, label);
  return result ? std::optional(shifted(*result, state_.logit_shift)) : std::nullopt;
}

std::optional<Evaluation> Trainer::measure(const BatchSource& source, const TrainerHooks& hooks,
                                           const std::string& label) {
  const auto on_batch = [&](std::int64_t done, std::int64_t total) {
    if (hooks.progress != nullptr && hooks.progress->is_terminal())
      hooks.progress->update({label, done, total});
    return !hooks.interrupted || !hooks.interrupted();
  };
  std::optional<Evaluation> result;
  if (average_) {
    const auto averaged = average_->apply();  // stands in for the weights while they are measured
    result = evaluate(*model_, source, device_, on_batch);
  } else {
    result = evaluate(*model_, source, device_, on_batch);
  }
  if (hooks.progress != nullptr) hooks.progress->finish();
  if (result) check_finite("the " + label + " loss", result->loss);
  return result;
}

double Trainer::tokens_per_second() const {
  return session_seconds_ > 0 ? static_cast<double>(session_tokens_) / session_seconds_ : 0;
}

void Trainer::check_finite(const std::string& what, double value) const {
  if (std::isfinite(value)) return;
  const auto checkpoints = list_checkpoints(run_);
  throw RunError(
      "train",
      fmt::format("{} must be finite; got {} after {} steps; {}; try a smaller --lr (now {}), a "
                  "longer --warmup-steps (now {}) or --clip-norm 1",
                  what, std::isnan(value) ? "nan" : fmt::format("{}", value), state_.step,
                  checkpoints.empty() ? std::string("no checkpoint was written yet")
                                      : "the last checkpoint is " + checkpoints.back().string(),
                  config_.lr, config_.warmup_steps));
}

}  // namespace imdb
