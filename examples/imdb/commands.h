// What the subcommands of `imdb` do. Results go to standard output, progress and remarks to
// standard error. All throw norma::Error; cli.h turns that into an exit code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "imdb/config.h"

namespace imdb {

/// Arguments of `imdb train`.
struct TrainArguments {
  /// Options given as flags, with their text.
  std::vector<std::pair<const ConfigField*, std::string>> flags;
  std::string config_file;
  bool bigram = false;
  std::string out;              ///< empty: a new folder in runs/
  std::string resume;           ///< run to continue; empty: start anew
  bool overwrite = false;       ///< replace a run that is already in `out`
  std::int64_t stop_after = 0;  ///< save and stop after so many steps; 0: never
  bool no_baseline = false;     ///< leave the linear baseline out of the report
};

/// Arguments of `eval`, `predict` and `info`, which start from a checkpoint.
struct ModelArguments {
  std::string model;  ///< folder of a run or checkpoint; empty: the newest run in runs/
  std::string data;   ///< empty: what the model was trained on
  std::string split = "test";
  std::string device = "cpu";
  std::int64_t threads = 0;
  std::vector<std::string> texts;  ///< predict: reviews from the command line
  std::string file;                ///< predict: a file that holds one review
  bool lines = false;              ///< predict: each line is a review
};

/// Arguments of `baseline`.
struct BaselineArguments {
  std::string data;
  std::string out;  ///< folder for metrics.json; empty: none
  std::int64_t threads = 0;
  std::int64_t seed = 1;
};

/// Arguments of `ablate`.
struct AblateArguments {
  /// Options given as flags, with their text; for all runs.
  std::vector<std::pair<const ConfigField*, std::string>> flags;
  std::vector<std::string> groups;  ///< empty: all that have a name
  std::vector<std::int64_t> seeds = {1, 2, 3};
  bool quick = false;
  std::optional<std::int64_t> test_limit;
  std::string out;              ///< empty: runs/ablate, with -quick, -sample
  std::int64_t stop_after = 0;  ///< save and stop after so many steps; 0: never
};

/// The configuration that `arguments` ask for: preset, then the variants that --bigram and a
/// missing
/// --data make of it, then the config file, then flags. Validated.
TrainConfig resolve_config(const TrainArguments& arguments);

void run_train(const TrainArguments& arguments);
void run_eval(const ModelArguments& arguments);
void run_predict(const ModelArguments& arguments);
void run_info(const ModelArguments& arguments);
void run_baseline(const BaselineArguments& arguments);
void run_ablate(const AblateArguments& arguments);

}  // namespace imdb
