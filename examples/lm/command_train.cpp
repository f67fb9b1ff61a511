// lm train: from a text to a model, its figures and its report.
#include <cmath>
#include <cstdio>

#include "imdb/checkpoint.h"
#include "imdb/command_support.h"
#include "imdb/files.h"
#include "imdb/interrupt.h"
#include "lm/checkpoint.h"
#include "lm/commands.h"
#include "lm/report.h"
#include "lm/trainer.h"
#include "norma/core/error.h"
#include "norma/nn/serialization.h"

namespace lm {
namespace {

namespace fs = std::filesystem;
using imdb::say;
using norma::check;
using norma::ValueError;

constexpr char kSampleNote[] =
    "No --data given: training on the 1,000 reviews inside the program (a quarter of a million "
    "words).\nIt shows that everything works: a model of so small a text learns words and the "
    "start "
    "of grammar.\nAny text file will do: {} train --data book.txt";

/// Preset, then the file, then flags.
Config resolve(const TrainArguments& arguments) {
  std::vector<std::pair<std::string, std::string>> file;
  if (!arguments.config_file.empty()) file = read_toml(arguments.config_file);
  std::string preset = Config{}.preset;
  for (const auto& source : {file, arguments.flags})
    for (const auto& [key, text] : source)
      if (key == "preset") preset = text;
  Config config = make_preset(preset);
  for (const auto& [key, text] : file)
    set_option(config, key, text, fmt::format("{}: {}", arguments.config_file, key));
  for (const auto& [key, text] : arguments.flags) set_option(config, key, text, "option " + key);
  return config;
}

/// A run may go on with more epochs, on another device, or from where the text moved to.
Config config_for_resume(const TrainArguments& arguments, const fs::path& checkpoint) {
  check<ValueError>(arguments.config_file.empty() && arguments.init.empty(), "train",
                    "--resume continues the run as it is; leave out --config and --init");
  const Config before = read_config(checkpoint / imdb::kConfigFile);
  Config config = before;
  for (const auto& [key, text] : arguments.flags) {
    set_option(config, key, text, "option " + key);
    Config rest = config;
    rest.epochs = before.epochs;
    rest.threads = before.threads;
    rest.device = before.device;
    rest.data = before.data;
    rest.unsup = before.unsup;
    check<ValueError>(rest == before, "train",
                      "--resume cannot change {} to {}; start a new run for that", key, text);
  }
  return config;
}

/// The folder of the run; made only when everything else is ready.
fs::path run_folder(const TrainArguments& arguments, const Config& config,
                    const fs::path& checkpoint) {
  if (!checkpoint.empty() && arguments.out.empty()) {
    const fs::path run = imdb::run_of_checkpoint(checkpoint);
    check<ValueError>(
        imdb::list_checkpoints(run).empty() ||
            fs::equivalent(imdb::list_checkpoints(run).back(), checkpoint),
        "train",
        "--resume must leave later checkpoints alone; got {}; resume the run, or give "
        "--out a new folder",
        checkpoint.string());
    return run;
  }
  if (arguments.out.empty()) imdb::make_directories(kRuns);
  return imdb::prepare_run_folder(
      arguments.out, fmt::format("lm/{}-seed{}", config.preset, config.seed), arguments.overwrite);
}

std::string config_markdown(const Config& config) {
  std::string text = "| option | value |\n|---|---|\n";
  each_option(config, [&](const char* key, const auto& value, const char*, double, double) {
    text += fmt::format("| {} | `{}` |\n", key, value);
  });
  return text;
}

/// What the model writes on its own, for the report and to look at.
std::string write_sample(Trainer& trainer, const Tokenizer& tokenizer) {
  const auto tokens = norma::nn::generate(trainer.model(), {Tokenizer::bos_id},
                                          {.max_new_tokens = 120,
                                           .eos_token_id = Tokenizer::eos_id,
                                           .sampling = {.temperature = 0.8, .top_p = 0.95},
                                           .seed = 1});
  return tokenizer.decode(tokens);
}

}  // namespace

void run_train(const TrainArguments& arguments) {
  const imdb::Stopwatch session;
  fs::path checkpoint;
  if (!arguments.resume.empty()) checkpoint = imdb::find_checkpoint(arguments.resume, "lm", kRuns);
  const bool resumes = !checkpoint.empty();
  const Config config = resumes ? config_for_resume(arguments, checkpoint) : resolve(arguments);
  model_config(config, config.vocab_size);  // an impossible shape throws here
  if (!resumes && !arguments.out.empty() && !arguments.overwrite)
    imdb::check_run_folder(arguments.out);
  const int threads = imdb::set_threads(config.threads);
  imdb::make_device(config.device);
  if (config.data.empty() && !resumes) say(fmt::format(kSampleNote, imdb::program_name()));

  const TrainData data = prepare_data(
      config, resumes ? load_tokenizer(checkpoint, imdb::load_state(checkpoint)) : nullptr, say);
  const imdb::InterruptGuard interrupt;
  Trainer trainer(config, data, threads, session);
  if (resumes) trainer.restore(checkpoint);
  if (!arguments.init.empty()) norma::nn::load(trainer.model(), arguments.init);

  const fs::path run = run_folder(arguments, config, checkpoint);
  imdb::write_file_atomic(run / imdb::kConfigFile, to_toml(config));
  imdb::EventWriter events(run / "events", resumes ? trainer.state().step + 1 : 0);
  if (!resumes) events.text("config", config_markdown(config), 0);
  say(fmt::format("model: {} parameters, {} steps, {} threads; results in {}",
                  trainer.model().num_parameters(), trainer.total_steps(), threads, run.string()));
  if (resumes) say(fmt::format("resumed after step {}", trainer.state().step));

  imdb::Progress progress;
  TrainerHooks hooks{.interrupted = [&] { return interrupt.requested(); },
                     .progress = &progress,
                     .events = &events};
  if (arguments.stop_after > 0) hooks.last_step = trainer.state().step + arguments.stop_after;
  const Outcome outcome = trainer.run(run, hooks);
  events.flush();
  if (outcome == Outcome::stopped)
    return say(fmt::format(
        "stopped after step {} of {}, saved; continue with: {} train --resume {}",
        trainer.state().step, trainer.total_steps(), imdb::program_name(), run.string()));

  const std::string sample = write_sample(trainer, *data.tokenizer);
  events.text("sample", sample, trainer.state().step);
  events.flush();
  const Report report{.config = config,
                      .state = trainer.state(),
                      .parameters = trainer.model().num_parameters(),
                      .unigram_loss = data.unigram_loss,
                      .bits_per_byte = bits_per_byte(trainer.state().epochs.back().dev_loss,
                                                     data.dev.tokens().size(), data.dev_bytes),
                      .tokens_per_second = trainer.tokens_per_second(),
                      .total_seconds = trainer.total_seconds(),
                      .sample = sample,
                      .facts = imdb::environment_facts(threads)};
  imdb::write_file_atomic(run / "metrics.json", metrics_json(report));
  imdb::write_file_atomic(run / "report.html", render_report(report));
  const double loss = trainer.state().epochs.back().dev_loss;
  std::printf("dev loss        %.4f\ndev perplexity  %.2f\nbits per byte   %.3f\n", loss,
              std::exp(loss), report.bits_per_byte);
  say(fmt::format("{} of training; see {}\nit writes:\n{}",
                  imdb::format_duration(trainer.state().train_seconds),
                  (run / "report.html").string(), sample));
  say(fmt::format("let it write: {} sample --model {} \"This movie\"", imdb::program_name(),
                  run.string()));
}

}  // namespace lm
