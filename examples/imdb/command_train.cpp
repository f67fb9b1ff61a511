// imdb train: from a configuration to a trained model, its figures and its report.
#include <chrono>
#include <cstdio>

#include "imdb/baseline.h"
#include "imdb/checkpoint.h"
#include "imdb/command_support.h"
#include "imdb/files.h"
#include "imdb/model.h"
#include "imdb/run_folder.h"
#include "imdb/trainer.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kShownMistakes = 12;

constexpr char kSampleNote[] =
    "No --data given: training on the sample inside the program (1,000 + 1,000 reviews of "
    "50,000).\n"
    "It shows that everything works; expect about 75 to 80 %, for 800 reviews cannot teach more.\n"
    "The real data gives about 88 %: `make imdb-data` fetches them (84 MB), then\n"
    "  imdb train --data data/aclImdb_v1.tar.gz";

// A run may go on with more epochs, on another device, or from where the data moved to.
bool may_change_on_resume(const std::string& key) {
  for (const char* allowed : {"epochs", "threads", "device", "data", "checkpoint_every"})
    if (key == allowed) return true;
  return false;
}

TrainConfig config_for_resume(const TrainArguments& arguments, const fs::path& checkpoint) {
  norma::check(arguments.config_file.empty(), "train",
               "--resume continues with the configuration of the run; leave out --config");
  TrainConfig config;
  apply_toml_file(config, checkpoint / kConfigFile);
  norma::check(!arguments.bigram || config.bigram_buckets > 0, "train",
               "--resume cannot add --bigram to a run without; start a new run for that");
  const TrainConfig before = config;
  for (const auto& [field, text] : arguments.flags) {
    set_field(config, *field, text, "flag " + field->flag());
    norma::check(
        may_change_on_resume(field->key) || get_field(config, *field) == get_field(before, *field),
        "train", "--resume cannot change {} from {} to {}; start a new run for that", field->key,
        get_field(before, *field), text);
  }
  validate(config);
  return config;
}

// Whether the run of `checkpoint` goes on where it is: without --out, or when --out names its
// folder.
bool resumes_in_place(const TrainArguments& arguments, const fs::path& checkpoint) {
  if (checkpoint.empty()) return false;
  std::error_code ignored;
  return arguments.out.empty() ||
         fs::equivalent(arguments.out, run_of_checkpoint(checkpoint), ignored);
}

// The folder of the run. --overwrite must never take away what --resume needs.
fs::path choose_run_folder(const TrainArguments& arguments, const TrainConfig& config,
                           const fs::path& checkpoint) {
  if (resumes_in_place(arguments, checkpoint)) return run_of_checkpoint(checkpoint);
  return prepare_run_folder(arguments.out,
                            fmt::format("{}{}-seed{}", config.preset,
                                        config.bigram_buckets > 0 ? "-bigram" : "", config.seed),
                            arguments.overwrite);
}

BaselineSummary measure_baseline(const RunData& data, double dev_fraction) {
  const auto start = Clock::now();
  BaselineOptions options;
  options.dev_fraction = dev_fraction;
  options.seed = kSplitSeed;
  const auto result = train_baseline(data.dataset, options);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  say(fmt::format("baseline: NB-weighted bigrams, test accuracy {:.2f} %; {:.1f} s",
                  100 * result.test_accuracy, seconds));
  return {true, result.test_accuracy, seconds};
}

Metrics make_metrics(const TrainConfig& config, const RunData& data, Trainer& trainer,
                     const Evaluation& test, double total_seconds) {
  const TrainState& state = trainer.state();
  Metrics m;
  m.preset = config.preset;
  m.data = data.name;
  m.seed = config.seed;
  m.device = config.device;
  m.threads = state.threads;
  m.bigram_buckets = config.bigram_buckets;
  m.dev_accuracy = state.epochs.empty() ? 0 : state.epochs.back().dev_accuracy;
  m.test_accuracy = test.accuracy;
  m.test_loss = test.loss;
  m.train_seconds = state.train_seconds;
  m.total_seconds = total_seconds;
  m.tokens_per_second = trainer.tokens_per_second();
  if (m.tokens_per_second == 0 && state.train_seconds > 0)  // resumed when all steps were done
    m.tokens_per_second = static_cast<double>(state.tokens) / state.train_seconds;
  m.peak_memory_bytes = peak_memory_bytes();
  m.parameters = trainer.model().num_parameters();
  m.train_reviews = static_cast<std::int64_t>(data.split.train.size());
  m.dev_by_movie = data.split.by_movie;
  m.dev_reviews = static_cast<std::int64_t>(data.split.dev.size());
  m.test_reviews = static_cast<std::int64_t>(data.dataset.test.size());
  m.vocabulary = data.tokenizer->vocab_size();
  m.steps = state.step;
  m.epochs = state.epochs;
  return m;
}

// A table in TensorBoard's TEXT tab.
std::string config_markdown(const TrainConfig& config) {
  std::string text = "| option | value |\n|---|---|\n";
  for (const auto& field : config_fields())
    text += fmt::format("| {}.{} | `{}` |\n", field.section, field.key, get_field(config, field));
  return text;
}

}  // namespace

void run_train(const TrainArguments& arguments) {
  const auto start = Clock::now();
  fs::path checkpoint;
  if (!arguments.resume.empty()) checkpoint = find_checkpoint(arguments.resume);
  const TrainConfig config =
      checkpoint.empty() ? resolve_config(arguments) : config_for_resume(arguments, checkpoint);
  if (!arguments.out.empty() && !arguments.overwrite && !resumes_in_place(arguments, checkpoint))
    check_run_folder(arguments.out);
  const int threads = set_threads(config.threads);
  make_device(config.device);
  if (config.data.empty()) say(kSampleNote);

  std::shared_ptr<const Tokenizer> tokenizer;
  if (!checkpoint.empty()) tokenizer = load_tokenizer(read_file(checkpoint / kTokenizerFile));
  const RunData data = prepare_data(config, tokenizer, say);
  // Only now, so that bad data leave no empty folder behind.
  const fs::path run = choose_run_folder(arguments, config, checkpoint);
  const InterruptGuard interrupt;
  Trainer trainer(config, data, run, threads);
  if (!checkpoint.empty()) trainer.restore(checkpoint);
  write_file_atomic(run / kConfigFile, to_toml(config));
  EventWriter events(run / "events");
  if (checkpoint.empty()) events.text("config", config_markdown(config), 0);
  say(fmt::format("model: {} parameters, {} steps, {} threads; results in {}",
                  trainer.model().num_parameters(), trainer.total_steps(), threads, run.string()));
  if (!checkpoint.empty())
    say(fmt::format("resumed after step {} from {}", trainer.state().step, checkpoint.string()));

  Progress progress;
  const std::int64_t first_step = trainer.state().step;
  const auto stop = [&] {
    return interrupt.requested() ||
           (arguments.stop_after > 0 && trainer.state().step - first_step >= arguments.stop_after);
  };
  if (trainer.run({stop, &progress, &events}) == Outcome::stopped) {
    events.flush();
    say(fmt::format("stopped after step {} of {}, saved; continue with: imdb train --resume {}",
                    trainer.state().step, trainer.total_steps(), run.string()));
    return;
  }

  const Evaluation test =
      trainer.evaluate_final(data.test_source(make_batch_options(config)), &progress, "test");
  events.scalar("test/accuracy", test.accuracy, trainer.state().step);
  events.flush();

  ReportData report;
  if (!arguments.no_baseline) report.baseline = measure_baseline(data, config.dev_fraction);
  const double total = std::chrono::duration<double>(Clock::now() - start).count();
  report.config = config;
  report.metrics = make_metrics(config, data, trainer, test, total);
  report.steps = trainer.state().steps;
  report.confusion = test.confusion;
  report.mistakes = confident_mistakes(test, data.dataset.test, kShownMistakes);
  report.facts = environment_facts(threads);
  write_file_atomic(run / "metrics.json", to_json(report.metrics));
  write_file_atomic(run / "report.html", render_report(report));

  std::printf("dev accuracy   %.4f\ntest accuracy  %.4f\n", report.metrics.dev_accuracy,
              test.accuracy);
  say(fmt::format("{} of training, {} in all; see {}",
                  format_duration(report.metrics.train_seconds), format_duration(total),
                  (run / "report.html").string()));
}

}  // namespace imdb
