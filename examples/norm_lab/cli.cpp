#include "norm_lab/cli.h"

#include "norm_lab/lab.h"
#include "norma/core/factory.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

namespace norm_lab {

namespace {

enum ExitCode { kExitOk = 0, kExitBadInput = 2, kExitFailure = 3 };

constexpr std::int64_t kLargestSeed = 4'294'967'295;
constexpr char kFooter[] = R"(
Examples:
  norm_lab all                    every experiment, some minutes on two cores
  norm_lab variance               one of them
  norm_lab signal --seed 7 --out signal.html
  norm_lab all --quick            seconds: shows that it works, proves nothing

Each prints claim, expected and measured values, and a verdict; the report has the charts, too.
Exit codes: 0 success (whatever the verdicts), 2 bad input or usage, 3 failure while running.)";

int report_error(const std::string& message, int code) {
  std::string line = message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::fprintf(stderr, "norm_lab: error: %s\n", line.c_str());
  return code;
}

// CLI11 itself only says that a subcommand is missing.
void check_command(const CLI::App& app, const std::string& word) {
  if (word.empty() || word.front() == '-') return;
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == word) return;
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  throw norma::ValueError("norm_lab",
                          fmt::format("the experiment must be one of {}; got {}", names, word));
}

void add_options(CLI::App& app, LabOptions& options, bool& gpu) {
  app.add_option("--seed", options.settings.seed, "seed of all random numbers")
      ->check(CLI::Range(std::int64_t{0}, kLargestSeed))
      ->capture_default_str();
  app.add_option("--out", options.out, "file of the report")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_flag("--gpu", gpu, "compute on cuda(0), at the large sizes");
  app.add_flag("--quick", options.settings.quick, "a few steps of each training, no evidence");
}

void run(const CLI::App& command, LabOptions options, bool gpu) {
  if (gpu) {
    options.settings.device = norma::cuda(0);
    norma::empty({1}, {.device = options.settings.device});  // says what is missing
  }
  std::vector<Experiment> chosen = experiments();
  if (command.get_name() != "all")
    std::erase_if(chosen, [&](const Experiment& one) { return command.get_name() != one.name; });
  run_lab(chosen, options);
}

}  // namespace

int run_cli(int argc, const char* const* argv) {
  LabOptions options;
  bool gpu = false;
  try {
    CLI::App app("Claims about normalization in Transformers, run again.", "norm_lab");
    app.require_subcommand(1);
    app.footer(kFooter);
    app.get_formatter()->column_width(28);
    add_options(*app.add_subcommand("all", "All experiments."), options, gpu);
    for (const Experiment& one : experiments())
      add_options(*app.add_subcommand(one.name, fmt::format("{}: {}.", one.group, one.title)),
                  options, gpu);
    try {
      check_command(app, argc > 1 ? argv[1] : "");
      app.parse(argc, argv);
    } catch (const CLI::Success& request) {  // --help
      app.exit(request);
      return kExitOk;
    } catch (const CLI::ParseError& error) {
      return report_error(std::string(error.what()) + "; `norm_lab --help` explains",
                          kExitBadInput);
    }
    run(*app.get_subcommands().front(), options, gpu);
    return kExitOk;
  } catch (const norma::FileError& error) {
    return report_error(error.what(), kExitFailure);
  } catch (const norma::NotImplementedError& error) {
    return report_error(error.what(), kExitFailure);
  } catch (const norma::Error& error) {
    return report_error(error.what(), kExitBadInput);
  } catch (const std::bad_alloc&) {
    return report_error("[memory] not enough memory", kExitFailure);
  } catch (const std::exception& error) {
    return report_error(error.what(), kExitFailure);
  }
}

}  // namespace norm_lab
