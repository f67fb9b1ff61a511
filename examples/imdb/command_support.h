// What several subcommands need.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "imdb/commands.h"
#include "imdb/run_data.h"
#include "imdb/train_state.h"
#include "norma/nn/classifier.h"

namespace imdb {

/// Sets the number of CPU threads (0: all this process may use) and returns it. Throws
/// norma::ValueError for more than make sense.
int set_threads(std::int64_t threads);

/// The device of that name; on the CPU, requests for memory that is not there fail from now on
/// (limit_memory). Throws norma::DeviceError when it is none, or this build or machine
/// lacks it.
norma::Device make_device(const std::string& name);

/// The program as it was called, for commands that people paste.
void set_program_name(const std::string& name);
const std::string& program_name();

/// A line on standard error.
void say(const std::string& line);

/// "training date", processor, version: facts of the machine for the report.
std::vector<std::pair<std::string, std::string>> environment_facts(std::int64_t threads);

/// A trained model with what belongs to it.
struct LoadedModel {
  std::filesystem::path checkpoint;
  TrainConfig config;
  TrainState state;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<norma::nn::TransformerClassifier>
      model;  ///< in eval mode, averaged weights if there are
};

/// Loads the model that `--model` means. Throws norma::FileError or norma::ValueError.
LoadedModel load_model(const std::string& model, const norma::Device& device);

}  // namespace imdb
