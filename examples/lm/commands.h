// What the subcommands of `lm` do. Results go to standard output, progress and remarks to standard
// error. All throw norma::Error; main turns that into an exit code.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "norma/nn/generate.h"

namespace lm {

struct TrainArguments {
  std::vector<std::pair<std::string, std::string>> flags;  ///< options given as flags: key, text
  std::string config_file;
  std::string init;             ///< safetensors file with the weights to start from
  std::string out;              ///< empty: a new folder in runs/lm
  std::string resume;           ///< run to continue; empty: start anew
  bool overwrite = false;       ///< replace a run that is already in `out`
  std::int64_t stop_after = 0;  ///< save and stop after so many steps; 0: never
};

/// Arguments of `sample` and `eval`, which start from a checkpoint.
struct ModelArguments {
  std::string model;  ///< folder of a run or checkpoint; empty: the newest run in runs/lm
  std::string data;   ///< eval: a text to measure on; empty: the development side of its own
  std::string device = "cpu";
  std::int64_t threads = 0;
  std::string prompt;
  std::int64_t samples = 1;
  bool no_cache = false;
  norma::nn::GenerateOptions generate = {.max_new_tokens = 120,
                                         .sampling = {.temperature = 0.8, .top_p = 0.95}};
};

void run_train(const TrainArguments& arguments);
void run_sample(const ModelArguments& arguments);
void run_eval(const ModelArguments& arguments);

}  // namespace lm
