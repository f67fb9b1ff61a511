#include "imdb/cli.h"

#include <signal.h>
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>

#include "imdb/command_support.h"
#include "imdb/commands.h"
#include "imdb/files.h"
#include "imdb/metrics.h"
#include "imdb/run_error.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

constexpr std::int64_t kMostSteps = 1'000'000'000;
constexpr std::int64_t kLargestSeed = 4'294'967'295;

constexpr char kTrainFooter[] = R"(
Examples:
  imdb train                                    the built-in sample, half a minute: shows that it works
  imdb train --data aclImdb_v1.tar.gz           the real data with imdb-tiny, about 88 %
  imdb train --data aclImdb_v1.tar.gz --bigram  with hashed bigrams, about 90 %
  imdb train --data D --preset imdb-nano --seed 7 --out runs/nano7
  imdb train --data D --norm layer_norm --placement post --lr 5e-4
  imdb train --config runs/nano7/config.toml --epochs 5      a file, and flags over it
  imdb train --resume runs/nano7                continue after Ctrl-C, bit for bit

Presets: imdb-tiny (the default: 1 layer, 64 wide, 384 tokens; 3 minutes on two cores), imdb-nano (192 tokens; half of
that), imdb-seed (6 layers, 256 wide, for comparing norms; hours on a CPU). --help of a flag shows imdb-tiny's value.

The data: https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz (`make imdb-data` fetches it).
Watch a run with: tensorboard --logdir runs)";

constexpr char kPredictFooter[] = R"(
Examples:
  imdb predict "A masterpiece." "I want my two hours back."
  imdb predict --model runs/nano7 --file review.txt
  imdb predict --lines < reviews.txt            one review a line

Prints one line a review: label, probability of that label, start of the text.)";

constexpr char kAblateFooter[] = R"(
Groups: A pre-LN, A2 pre-RMSNorm, B1 no norm, B2 no norm from Xavier's initial values, C1 pre-BatchNorm with padding in
its statistics, C2 without, D post-LN, E DeepNorm. The setting is that of an article which reports 89.3 % for A, that B
diverges, and 76.1 % for C: preset imdb-seed, which --quick makes small enough for two cores.

Examples:
  imdb ablate --data aclImdb_v1.tar.gz --quick           all groups, three seeds
  imdb ablate --data aclImdb_v1.tar.gz --device cuda     the article's size
  imdb ablate --data D --quick --groups A,D --lr 2e-3 --out runs/fast
  imdb ablate --data D --quick --groups rms_norm/sandwich,dyt/pre,none/none/xavier --seeds 1

Ctrl-C saves; the same command goes on. Results: results.md and results.json in --out, events/ for TensorBoard.)";

constexpr char kMainFooter[] = R"(
Start here:
  imdb train                            learns from a small built-in sample, needs nothing
  imdb predict "What a lovely film."    asks the model of the newest run
  imdb COMMAND --help                   explains the options of a command

Exit codes: 0 success, 2 bad input or usage, 3 failure while running.)";

using Flags = std::vector<std::pair<const ConfigField*, std::string>>;

// Adds one flag for each row of the table of options but those in `without`.
void add_config_flags(CLI::App& app, Flags& flags, const TrainConfig& defaults,
                      const std::vector<std::string>& without = {}) {
  for (const auto& field : config_fields()) {
    if (std::find(without.begin(), without.end(), field.key) != without.end()) continue;
    const std::string group = std::string("Options [") + field.section + "]";
    const auto remember = [&flags, &field](const std::string& text) {
      flags.emplace_back(&field, text);
    };
    if (std::holds_alternative<bool TrainConfig::*>(field.member)) {
      const std::string off = "!--no-" + field.flag().substr(2);
      app.add_flag_function(
             field.flag() + "," + off,
             [remember](std::int64_t count) { remember(count > 0 ? "true" : "false"); }, field.help)
          ->group(group);
      continue;
    }
    auto* option = app.add_option_function<std::string>(field.flag(), remember, field.help);
    std::string type =
        std::holds_alternative<std::string TrainConfig::*>(field.member) ? "TEXT" : "N";
    if (!field.choices.empty()) {
      type.clear();
      for (const auto& choice : field.choices) type += (type.empty() ? "" : "|") + choice;
    }
    option->type_name(type)->group(group)->take_last();  // a later flag wins
    if (const auto value = get_field(defaults, field); !value.empty()) option->default_str(value);
  }
}

void add_train(CLI::App& app, TrainArguments& arguments) {
  auto* train = app.add_subcommand("train",
                                   "Train a Transformer on movie reviews.\n"
                                   "Options start from a preset (defaults shown are those of "
                                   "imdb-tiny), then --config, then flags.");
  train->footer(kTrainFooter);
  train->add_option("--config", arguments.config_file, "TOML file with options; flags go over it")
      ->type_name("FILE");
  train->add_option("--out", arguments.out, "folder for the results (default: a new one in runs/)")
      ->type_name("DIR");
  train->add_option("--resume", arguments.resume, "continue the run in this folder")
      ->type_name("DIR");
  train->add_flag("--bigram", arguments.bigram,
                  "imdb-tiny with hashed bigrams: two layers, longer inputs");
  train->add_flag("--overwrite", arguments.overwrite, "replace a run that is already in --out");
  train->add_option("--stop-after", arguments.stop_after, "save and stop after N steps")
      ->check(CLI::Range(std::int64_t{1}, kMostSteps))
      ->type_name("N");
  train->add_flag("--no-baseline", arguments.no_baseline,
                  "do not train the linear baseline (five seconds) for the report");
  add_config_flags(*train, arguments.flags, TrainConfig());
  train->callback([&arguments] { run_train(arguments); });
}

void add_device_options(CLI::App& app, ModelArguments& arguments) {
  app.add_option("--device", arguments.device, "where to compute: cpu, cuda or cuda:N")
      ->capture_default_str();
  app.add_option("--threads", arguments.threads, "CPU threads; 0: all cores")
      ->capture_default_str();
}

void add_model_option(CLI::App& app, ModelArguments& arguments) {
  app.add_option("--model", arguments.model,
                 "folder of a run or of one checkpoint (default: the newest run in runs/)")
      ->type_name("DIR");
}

void add_model_commands(CLI::App& app, ModelArguments& arguments) {
  auto* eval = app.add_subcommand("eval", "Measure a trained model on a split of the data.");
  add_model_option(*eval, arguments);
  eval->add_option("--data", arguments.data, "archive or folder (default: what it was trained on)")
      ->type_name("PATH");
  eval->add_option("--split", arguments.split, "reviews to measure on")
      ->check(CLI::IsMember({"test", "dev", "train"}))
      ->capture_default_str();
  add_device_options(*eval, arguments);
  eval->callback([&arguments] { run_eval(arguments); });

  auto* predict = app.add_subcommand("predict", "Tell whether reviews are positive or negative.");
  predict->footer(kPredictFooter);
  add_model_option(*predict, arguments);
  predict->add_option("TEXT", arguments.texts, "reviews; none, or -: --file or standard input");
  predict->add_option("--file", arguments.file, "file with one review")->type_name("FILE");
  predict->add_flag("--lines", arguments.lines,
                    "each line of the file or standard input is a review");
  add_device_options(*predict, arguments);
  predict->callback([&arguments] { run_predict(arguments); });

  auto* info = app.add_subcommand(
      "info", "Describe this program and machine, a data set (--data) or a model (--model).");
  info->add_option("--model", arguments.model, "folder of a run or of one checkpoint")
      ->type_name("DIR");
  info->add_option("--data", arguments.data, "archive or folder")->type_name("PATH");
  info->callback([&arguments] { run_info(arguments); });
}

void add_baseline(CLI::App& app, BaselineArguments& arguments) {
  auto* baseline = app.add_subcommand(
      "baseline",
      "Train the linear rival: a support vector machine on Naive-Bayes weighted word bigrams.");
  baseline->add_option("--data", arguments.data, "archive or folder (default: the built-in sample)")
      ->type_name("PATH");
  baseline->add_option("--out", arguments.out, "folder for metrics.json")->type_name("DIR");
  baseline->add_option("--seed", arguments.seed, "seed of the development split")
      ->check(CLI::Range(std::int64_t{0}, kLargestSeed))
      ->capture_default_str();
  baseline->add_option("--threads", arguments.threads, "CPU threads; 0: all cores")
      ->capture_default_str();
  baseline->callback([&arguments] { run_baseline(arguments); });
}

void add_ablate(CLI::App& app, AblateArguments& arguments) {
  auto* ablate = app.add_subcommand(
      "ablate", "Train the same model with its norms in other places, or others, or none.");
  ablate->footer(kAblateFooter);
  ablate
      ->add_option("--groups", arguments.groups,
                   "comma-separated: A, A2, B1, B2, C1, C2, D, E, or norm/placement (default: all "
                   "of the former)")
      ->delimiter(',')
      ->type_name("GROUP,...");
  ablate->add_option("--seeds", arguments.seeds, "comma-separated seeds, a run of each group")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{0}, kLargestSeed))
      ->default_str("1,2,3")
      ->type_name("N,...");
  ablate->add_flag("--quick", arguments.quick, "a smaller model on fewer, shorter reviews");
  ablate
      ->add_option("--test-limit", arguments.test_limit,
                   "measure on so many test reviews; 0: all (default; with --quick 5000)")
      ->check(CLI::Range(std::int64_t{0}, kMostSteps))
      ->type_name("N");
  ablate
      ->add_option(
          "--out", arguments.out,
          "folder of the results (default: runs/ablate, -quick, -sample); what is finished "
          "there stays, what was interrupted goes on")
      ->type_name("DIR");
  ablate->add_option("--stop-after", arguments.stop_after, "save and stop after N steps in all")
      ->check(CLI::Range(std::int64_t{1}, kMostSteps))
      ->type_name("N");
  add_config_flags(*ablate, arguments.flags, make_preset("imdb-seed"),
                   {"preset", "seed", "norm", "placement", "init"});
  ablate->callback([&arguments] { run_ablate(arguments); });
}

// What was printed has arrived, or this throws.
void finish_output() {
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw WriteError("write", "cannot write to standard output");
}

// CLI11 itself only says that a subcommand is missing.
void check_command(const CLI::App& app, const std::string& word) {
  if (word.empty() || word.front() == '-') return;
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == word) return;
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  const std::string& program = app.get_name();
  throw norma::ValueError(
      program, fmt::format("the command must be one of {}; got {}; `{} --help` explains them",
                           names, word, program));
}

int report_error(const CLI::App& app, const std::string& message, int code) {
  std::string line = message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::fprintf(stderr, "%s: error: %s\n", app.get_name().c_str(), line.c_str());
  return code;
}

}  // namespace

int run_app(CLI::App& app, int argc, const char* const* argv) {
  // A write that fails must come back as an error with a name, not as a signal.
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  const auto fail = [&](const std::string& message, int code) {
    return report_error(app, message, code);
  };
  try {
    try {
      check_command(app, argc > 1 ? argv[1] : "");
      app.parse(argc, argv);
    } catch (const CLI::Success& request) {  // --help, --version
      app.exit(request);
    } catch (const CLI::ParseError& error) {
      return fail(fmt::format("{}; `{} --help` and `{} COMMAND --help` explain", error.what(),
                              app.get_name(), app.get_name()),
                  kExitBadInput);
    }
    finish_output();
    return kExitOk;
  } catch (const RunError& error) {
    return fail(error.what(), kExitFailure);
  } catch (const WriteError& error) {
    return fail(error.what(), kExitFailure);
  } catch (const norma::OutOfMemoryError& error) {
    return fail(error.what(), kExitFailure);
  } catch (const norma::AutogradError& error) {
    return fail(error.what(), kExitFailure);
  } catch (const norma::Error& error) {
    return fail(error.what(), kExitBadInput);
  } catch (const std::bad_alloc&) {
    return fail("[memory] not enough memory; try a smaller --batch-size or a shorter input",
                kExitFailure);
  } catch (const std::exception& error) {
    return fail(error.what(), kExitFailure);
  } catch (...) {
    return fail("unknown failure", kExitFailure);
  }
}

int run_cli(int argc, const char* const* argv) {
  TrainArguments train;
  ModelArguments model;
  BaselineArguments baseline;
  AblateArguments ablate;
  CLI::App app("Sentiment of movie reviews with a Transformer trained from scratch.", "imdb");
  app.require_subcommand(1);
  app.footer(kMainFooter);
  app.set_version_flag("--version", fmt::format("imdb, norma {} ({})", version(), git_revision()));
  app.get_formatter()->column_width(34);
  add_train(app, train);
  add_model_commands(app, model);
  add_baseline(app, baseline);
  add_ablate(app, ablate);
  set_program_name(argv[0]);
  return run_app(app, argc, argv);
}

}  // namespace imdb
