// The training loop: one model, its optimizer and everything that a checkpoint must hold.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include "imdb/progress.h"
#include "imdb/stopwatch.h"
#include "imdb/tensorboard.h"
#include "imdb/train_state.h"
#include "lm/text_data.h"
#include "norma/optim/adamw.h"
#include "norma/optim/lr_scheduler.h"

namespace lm {

/// How well a model predicts each token from those before it in its row.
struct Evaluation {
  double loss = 0;      ///< mean cross-entropy in nats
  double accuracy = 0;  ///< share of tokens that are the most probable one
  std::int64_t tokens = 0;
};

/// Measures `model` in evaluation mode. `on_batch(done, total)` is called after each batch; false
/// stops: then there is no result.
std::optional<Evaluation> evaluate(norma::nn::CausalLM& model, const Rows& rows,
                                   const norma::Device& device,
                                   const std::function<bool(std::int64_t, std::int64_t)>& on_batch);

/// How a call of Trainer::run ended.
enum class Outcome { finished, stopped };

struct TrainerHooks {
  std::function<bool()> interrupted;  ///< asked after each step; true: save and return
  std::int64_t last_step = std::numeric_limits<std::int64_t>::max();  ///< then save and return
  imdb::Progress* progress = nullptr;
  imdb::EventWriter* events = nullptr;
};

/// Trains `config`'s model on `data`. The same configuration, data and number of threads give the
/// same weights bit for bit, also across any number of checkpoints and resumes.
class Trainer {
 public:
  Trainer(const Config& config, const TrainData& data, std::int64_t threads,
          const imdb::Stopwatch& session);

  /// Continues from a checkpoint. Throws norma::FileError or norma::ValueError (among others for
  /// other training text), and leaves a trainer that must not be used.
  void restore(const std::filesystem::path& checkpoint);
  /// Trains to the end of the last epoch, with a checkpoint in `run` after each one and when
  /// stopped. Throws imdb::RunError when a loss or a gradient is not finite.
  Outcome run(const std::filesystem::path& run, const TrainerHooks& hooks);

  const imdb::TrainState& state() const { return state_; }
  norma::nn::CausalLM& model() { return *model_; }
  std::int64_t total_steps() const { return config_.epochs * data_.train.batches(); }
  double tokens_per_second() const;
  double total_seconds() const { return former_seconds_ + session_.seconds(); }

 private:
  void make_optimizer();
  bool run_epoch(const TrainerHooks& hooks);
  void train_step(const norma::Tensor& tokens, const TrainerHooks& hooks);
  bool finish_epoch(const TrainerHooks& hooks);
  void show_progress(imdb::Progress& progress) const;
  bool must_stop(const TrainerHooks& hooks) const;
  void check_finite(const char* what, double value) const;
  void save();

  Config config_;
  const TrainData& data_;
  norma::Device device_;
  std::filesystem::path run_;
  std::unique_ptr<norma::nn::CausalLM> model_;
  norma::TensorList parameters_;
  std::unique_ptr<norma::optim::AdamW> optimizer_;
  std::unique_ptr<norma::optim::LRScheduler> schedule_;
  imdb::TrainState state_;
  imdb::Stopwatch session_;
  double former_seconds_ = 0;   ///< total_seconds() of the sessions before this
  double session_seconds_ = 0;  ///< of steps since this program started
  std::int64_t session_tokens_ = 0;
  std::int64_t session_steps_ = 0;
};

}  // namespace lm
