// imdb train: from a configuration to a trained model, its figures and its report.
#include <cstdio>

#include "imdb/baseline.h"
#include "imdb/checkpoint.h"
#include "imdb/command_support.h"
#include "imdb/files.h"
#include "imdb/interrupt.h"
#include "imdb/model.h"
#include "imdb/run_folder.h"
#include "imdb/stopwatch.h"
#include "imdb/trainer.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownMistakes = 12;

constexpr char kSampleNote[] =
    "No --data given: training on the sample inside the program (1,000 + 1,000 reviews of "
    "50,000).\n"
    "It shows that everything works; expect about 75 to 80 %, for 800 reviews cannot teach more.\n"
    "So few reviews take more and smaller steps than the preset says; the run's config.toml has "
    "all.\n"
    "The real data gives about 88 %: `make imdb-data` fetches them (84 MB), then\n"
    "  {} train --data data/aclImdb_v1.tar.gz";

// A run may go on with more epochs, on another device, or from where the data moved to.
bool may_change_on_resume(const std::string& key) {
  for (const char* allowed : {"epochs", "threads", "device", "data", "checkpoint_every"})
    if (key == allowed) return true;
  return false;
}

TrainConfig config_for_resume(const TrainArguments& arguments, const fs::path& checkpoint) {
  norma::check(arguments.config_file.empty(), "train",
               "--resume continues with the configuration of the run; leave out --config");
  TrainConfig config = read_complete_config(checkpoint / kConfigFile);
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

// Refuses, before anything is read or written, a folder that holds what must stay.
void check_target(const TrainArguments& arguments, const fs::path& checkpoint) {
  if (resumes_in_place(arguments, checkpoint)) {
    const auto all = list_checkpoints(run_of_checkpoint(checkpoint));
    norma::check(all.empty() || fs::equivalent(all.back(), checkpoint), "train",
                 "--resume must leave checkpoints after {} alone; got a run with {}; resume that, "
                 "or give --out a new folder",
                 checkpoint.string(), all.empty() ? "" : all.back().string());
  } else if (!arguments.out.empty() && !arguments.overwrite) {
    check_run_folder(arguments.out);
  }
}

// The bits of a matrix product depend on how many threads share it.
void warn_of_other_threads(const fs::path& checkpoint, std::int64_t threads) {
  const std::int64_t former = load_state(checkpoint).threads;
  if (former != threads)
    say(
        fmt::format("warning: trained with {} threads until here, now with {}: the result may "
                    "differ in the last bits from that of a run that never stopped; --threads {} "
                    "keeps them",
                    former, threads, former));
}

// The folder of the run. A new one goes away again if no step was trained.
class RunFolder {
 public:
  RunFolder(const TrainArguments& arguments, const TrainConfig& config, const fs::path& checkpoint,
            const TrainState& state)
      : state_(state) {
    // --overwrite must never take away what --resume needs.
    if (resumes_in_place(arguments, checkpoint)) {
      path_ = run_of_checkpoint(checkpoint);
      return;
    }
    is_new_ = arguments.out.empty() || !fs::exists(arguments.out);
    const auto name = fmt::format("{}{}-seed{}", config.preset,
                                  config.bigram_buckets > 0 ? "-bigram" : "", config.seed);
    path_ = prepare_run_folder(arguments.out, name, arguments.overwrite);
  }
  ~RunFolder() {
    std::error_code ignored;
    if (is_new_ && state_.step == 0) fs::remove_all(path_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  const TrainState& state_;
  fs::path path_;
  bool is_new_ = false;
};

BaselineSummary measure_baseline(const RunData& data, double dev_fraction) {
  const Stopwatch watch;
  BaselineOptions options;
  options.dev_fraction = dev_fraction;
  options.seed = kSplitSeed;
  const auto result = train_baseline(data.dataset, options);
  const double seconds = watch.seconds();
  say(fmt::format(
      "baseline: NB-weighted bigrams, from all {} reviews: test accuracy {:.2f} %; {:.1f} s",
      data.dataset.train.size(), 100 * result.test_accuracy, seconds));
  return {true, result.test_accuracy, seconds};
}

Metrics make_metrics(const TrainConfig& config, const RunData& data, Trainer& trainer,
                     const Evaluation& test) {
  const TrainState& state = trainer.state();
  Metrics m;
  m.preset = config.preset;
  m.data = data.name;
  m.seed = config.seed;
  m.device = config.device;
  m.threads = state.threads;
  m.bigram_buckets = config.bigram_buckets;
  m.dev_accuracy = state.epochs.empty() ? 0 : state.epochs.back().dev_accuracy;
  m.logit_shift = state.logit_shift;
  m.test_accuracy = test.accuracy;
  m.test_loss = test.loss;
  m.train_seconds = state.train_seconds;
  m.total_seconds = trainer.total_seconds();
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

void say_how_to_continue(const std::string& where, const fs::path& run) {
  say(fmt::format("{}, saved; continue with: {} train --resume {}", where, program_name(),
                  run.string()));
}

}  // namespace

void run_train(const TrainArguments& arguments) {
  const Stopwatch session;
  fs::path checkpoint;
  if (!arguments.resume.empty()) checkpoint = find_checkpoint(arguments.resume);
  const bool resumes = !checkpoint.empty();
  const TrainConfig config =
      resumes ? config_for_resume(arguments, checkpoint) : resolve_config(arguments);
  make_classifier_config(config, config.vocab_size);  // an impossible shape throws here
  check_target(arguments, checkpoint);
  const int threads = set_threads(config.threads);
  make_device(config.device);
  if (config.data.empty() && !resumes) say(fmt::format(kSampleNote, program_name()));
  if (resumes) warn_of_other_threads(checkpoint, threads);

  const RunData data = prepare_data(
      config, resumes ? load_tokenizer_file(checkpoint, load_state(checkpoint)) : nullptr, say);
  const InterruptGuard interrupt;
  Trainer trainer(config, data, threads, session);
  if (resumes) trainer.restore(checkpoint);
  // Only now, so that a start that fails leaves no folder behind.
  const RunFolder folder(arguments, config, checkpoint, trainer.state());
  const fs::path& run = folder.path();
  write_file_atomic(run / kConfigFile, to_toml(config));
  EventWriter events(run / "events", resumes ? trainer.state().step + 1 : 0);
  if (!resumes) events.text("config", config_markdown(config), 0);
  say(fmt::format("model: {} parameters, {} steps, {} threads; results in {}",
                  trainer.model().num_parameters(), trainer.total_steps(), threads, run.string()));
  if (resumes)
    say(fmt::format("resumed after step {} from {}", trainer.state().step, checkpoint.string()));

  Progress progress;
  TrainerHooks hooks{.interrupted = [&] { return interrupt.requested(); },
                     .progress = &progress,
                     .events = &events};
  if (arguments.stop_after > 0) hooks.last_step = trainer.state().step + arguments.stop_after;
  const Outcome outcome = trainer.run(run, hooks);
  events.flush();
  if (outcome == Outcome::stopped)
    return say_how_to_continue(
        fmt::format("stopped after step {} of {}", trainer.state().step, trainer.total_steps()),
        run);

  const auto test =
      trainer.evaluate_final(data.test_source(make_batch_options(config)), hooks, "test");
  if (!test) return say_how_to_continue("stopped in the test; all training is done", run);
  events.scalar("test/accuracy", test->accuracy, trainer.state().step);
  events.flush();

  ReportData report;
  if (!arguments.no_baseline && !interrupt.requested())
    report.baseline = measure_baseline(data, config.dev_fraction);
  report.config = config;
  report.metrics = make_metrics(config, data, trainer, *test);
  report.steps = trainer.state().steps;
  report.confusion = test->confusion;
  report.mistakes = confident_mistakes(*test, data.dataset.test, kShownMistakes);
  report.facts = environment_facts(threads);
  write_file_atomic(run / "metrics.json", to_json(report.metrics));
  write_file_atomic(run / "report.html", render_report(report));

  std::printf("dev accuracy   %.4f\ntest accuracy  %.4f\n", report.metrics.dev_accuracy,
              test->accuracy);
  say(fmt::format("{} of training, {} in all; see {}",
                  format_duration(report.metrics.train_seconds),
                  format_duration(report.metrics.total_seconds), (run / "report.html").string()));
  say(fmt::format("ask it: {} predict --model {} \"What a lovely film.\"", program_name(),
                  run.string()));
}

}  // namespace imdb
