// The training loop: one model, its optimizer and everything that a checkpoint must hold.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "imdb/checkpoint.h"
#include "imdb/evaluate.h"
#include "imdb/progress.h"
#include "imdb/run_data.h"
#include "imdb/stopwatch.h"
#include "imdb/tensorboard.h"
#include "imdb/train_state.h"
#include "norma/nn/classifier.h"
#include "norma/nn/loss.h"
#include "norma/optim/adamw.h"
#include "norma/optim/ema.h"
#include "norma/optim/lr_scheduler.h"

namespace imdb {

/// How a call of Trainer::run ended.
enum class Outcome { finished, stopped };

struct TrainerHooks {
  /// Asked after each step and each batch of an evaluation; true: save and return.
  std::function<bool()> interrupted;
  std::int64_t last_step = std::numeric_limits<std::int64_t>::max();  ///< then save and return
  Progress* progress = nullptr;                                       ///< may be null
  EventWriter* events = nullptr;                                      ///< may be null
};

/// Trains `config`'s model on `data`. The same configuration, data and number of threads give the
/// same weights bit for bit, also across any number of checkpoints and resumes.
class Trainer {
 public:
  /// A new run, which writes nothing yet. Seeds norma's generators with config.seed. `session` has
  /// been running since this program started.
  Trainer(const TrainConfig& config, const RunData& data, std::int64_t threads,
          const Stopwatch& session);

  /// Continues from a checkpoint: weights, optimizer, average, random numbers, position in the
  /// data. Throws norma::FileError or norma::ValueError (among others for other training data), and
  /// leaves a trainer that must not be used.
  void restore(const std::filesystem::path& checkpoint);

  /// Trains to the end of the last epoch. Saves a checkpoint in `folder` after each epoch, every
  /// config.checkpoint_every steps, and when stopped. Throws RunError when a loss or a
  /// gradient is not finite (the last checkpoint stays), WriteError when the disk is full.
  Outcome run(const std::filesystem::path& folder, const TrainerHooks& hooks);

  /// Measures the final weights (the average, if there is one), their logits shifted as the last
  /// development evaluation found. Nothing when interrupted.
  std::optional<Evaluation> evaluate_final(const BatchSource& source, const TrainerHooks& hooks,
                                           const std::string& label);

  const TrainState& state() const { return state_; }
  norma::nn::TransformerClassifier& model() { return *model_; }
  std::int64_t total_steps() const { return config_.epochs * source_.batches(); }
  /// Training tokens a second since this program started, padding not counted.
  double tokens_per_second() const;
  /// Since the program started, and in the sessions before that this run continues, each up to its
  /// last checkpoint.
  double total_seconds() const { return former_seconds_ + session_.seconds(); }

 private:
  struct StepResult {
    double loss = 0;
    double grad_norm = 0;
    double lr = 0;
    std::int64_t correct = 0;
    std::int64_t size = 0;    ///< reviews
    std::int64_t tokens = 0;  ///< without padding
  };

  void make_optimizer();
  void keep_on_sphere();  ///< what nGPT asks for: before training and after every step
  bool run_epoch(const TrainerHooks& hooks);
  StepResult train_step(const Batch& batch);
  bool finish_epoch(const TrainerHooks& hooks);
  std::optional<Evaluation> measure(const BatchSource& source, const TrainerHooks& hooks,
                                    const std::string& label);
  bool must_stop(const TrainerHooks& hooks) const;
  void save();
  void record_step(const StepResult& result, const TrainerHooks& hooks);
  void show_progress(Progress& progress) const;
  void restore_average(const std::filesystem::path& checkpoint, const TensorMap& training);
  void check_finite(const std::string& what, double value) const;

  TrainConfig config_;
  std::filesystem::path run_;
  norma::Device device_;
  BatchSource source_;
  BatchSource dev_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<norma::nn::TransformerClassifier> model_;
  norma::nn::CrossEntropyLoss loss_;
  norma::TensorList parameters_;
  std::unique_ptr<norma::optim::AdamW> optimizer_;
  std::unique_ptr<norma::optim::LRScheduler> schedule_;
  std::unique_ptr<norma::optim::EMA> average_;  ///< null without ema_decay
  TrainState state_;
  Stopwatch session_;
  double former_seconds_ = 0;   ///< total_seconds() of the sessions before this
  double session_seconds_ = 0;  ///< of steps since this program started: for tokens/s and ETA
  std::int64_t session_tokens_ = 0;
  std::int64_t session_steps_ = 0;
};

}  // namespace imdb
