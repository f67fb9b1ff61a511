#include <CLI/CLI.hpp>
#include <algorithm>

#include "imdb/cli.h"
#include "imdb/command_support.h"
#include "imdb/metrics.h"
#include "lm/commands.h"
#include "lm/config.h"
#include "norma/ops/threads.h"

namespace {

constexpr char kTrainFooter[] = R"(
Examples:
  lm train                                       the built-in sample: three minutes on two cores
  lm train --data book.txt --vocab-size 1000     any text file
  lm train --data aclImdb_v1.tar.gz --epochs 1   the IMDb training reviews
  lm train --preset minimind-v2 --data corpus.txt --device cuda
  lm train --resume runs/lm/lm-tiny-seed1        continue after Ctrl-C, bit for bit

Options start from the preset (defaults shown are those of lm-tiny), then --config, then flags.)";

constexpr char kMainFooter[] = R"(
Start here:
  lm train                       learns from a small built-in sample, needs nothing
  lm sample "This movie"         lets the newest run write
  lm eval                        perplexity of the newest run on its development text

Exit codes: 0 success, 2 bad input or usage, 3 failure while running.)";

void add_train(CLI::App& app, lm::TrainArguments& arguments) {
  auto* train = app.add_subcommand("train", "Train a language model on a text.");
  train->footer(kTrainFooter);
  train->add_option("--config", arguments.config_file, "TOML file with options; flags go over it")
      ->type_name("FILE");
  train->add_option("--init", arguments.init, "start from the weights in this safetensors file")
      ->type_name("FILE");
  train
      ->add_option("--out", arguments.out, "folder for the results (default: a new one in runs/lm)")
      ->type_name("DIR");
  train->add_option("--resume", arguments.resume, "continue the run in this folder")
      ->type_name("DIR");
  train->add_flag("--overwrite", arguments.overwrite, "replace a run that is already in --out");
  train->add_option("--stop-after", arguments.stop_after, "save and stop after N steps")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->type_name("N");
  const lm::Config defaults;
  lm::each_option(
      defaults, [&](const std::string& key, const auto& value, const char* help, double, double) {
        std::string flag = "--" + key;
        std::replace(flag.begin(), flag.end(), '_', '-');
        const auto remember = [&arguments, key](const std::string& text) {
          arguments.flags.emplace_back(key, text);
        };
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) {
          train->add_flag_function(
              flag + ",!--no-" + flag.substr(2),
              [remember](std::int64_t count) { remember(count > 0 ? "true" : "false"); }, help);
        } else {
          auto* option = train->add_option_function<std::string>(flag, remember, help);
          option->type_name(std::is_same_v<T, std::string> ? "TEXT" : "N")->take_last();
          if (const std::string text = fmt::format("{}", value); !text.empty())
            option->default_str(text);
        }
      });
  train->callback([&arguments] { lm::run_train(arguments); });
}

void add_model_options(CLI::App& app, lm::ModelArguments& arguments) {
  app.add_option("--model", arguments.model,
                 "folder of a run or of one checkpoint (default: the newest run in runs/lm)")
      ->type_name("DIR");
  app.add_option("--device", arguments.device, "where to compute: cpu, cuda or cuda:N")
      ->capture_default_str();
  app.add_option("--threads", arguments.threads, "CPU threads; 0: all cores")
      ->capture_default_str();
}

void add_model_commands(CLI::App& app, lm::ModelArguments& arguments) {
  auto* sample = app.add_subcommand("sample", "Let a trained model write.");
  sample->add_option("PROMPT", arguments.prompt, "how the text begins");
  add_model_options(*sample, arguments);
  auto& options = arguments.generate;
  sample->add_option("--max-tokens", options.max_new_tokens, "longest text, in tokens")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}))
      ->capture_default_str();
  sample
      ->add_option("--temperature", options.sampling.temperature,
                   "below 1: bolder choices; 0: always the most probable token")
      ->capture_default_str();
  sample->add_option("--top-k", options.sampling.top_k, "only the K most probable tokens; 0: all")
      ->capture_default_str();
  sample
      ->add_option("--top-p", options.sampling.top_p,
                   "only the fewest tokens that together have this probability")
      ->capture_default_str();
  sample->add_option("--seed", options.seed, "the same seed writes the same text")
      ->capture_default_str();
  sample->add_option("--samples", arguments.samples, "how many texts; each takes the next seed")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000}))
      ->capture_default_str();
  sample->add_flag("--no-cache", arguments.no_cache,
                   "compute every token from the whole text: slower, the same result");
  sample->callback([&arguments] { lm::run_sample(arguments); });

  auto* eval = app.add_subcommand("eval", "Measure perplexity: how well a model predicts a text.");
  add_model_options(*eval, arguments);
  eval->add_option("--data", arguments.data,
                   "text to measure on (default: the development side of what it was trained on)")
      ->type_name("PATH");
  eval->callback([&arguments] { lm::run_eval(arguments); });
}

}  // namespace

int main(int argc, char** argv) {
  norma::limit_thread_spinning(argv);
  lm::TrainArguments train;
  lm::ModelArguments model;
  imdb::set_program_name(argv[0]);
  CLI::App app("A small language model, trained from scratch: RMSNorm, RoPE, SwiGLU.", "lm");
  app.require_subcommand(1);
  app.footer(kMainFooter);
  app.set_version_flag("--version",
                       fmt::format("lm, norma {} ({})", imdb::version(), imdb::git_revision()));
  app.get_formatter()->column_width(34);
  add_train(app, train);
  add_model_commands(app, model);
  return imdb::run_app(app, argc, argv);
}
