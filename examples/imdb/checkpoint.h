// The files of a checkpoint folder. Each checkpoint is complete: it needs neither its run nor its
// data to predict.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "imdb/run_folder.h"
#include "imdb/tokenizer.h"
#include "imdb/train_state.h"
#include "norma/nn/module.h"

namespace imdb {

inline constexpr char kModelFile[] = "model.safetensors";  ///< the weights that are trained
inline constexpr char kAverageFile[] =
    "average.safetensors";  ///< their moving average, if there is one
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";  ///< moments, by parameter name
inline constexpr char kTokenizerFile[] = "tokenizer.bin";
inline constexpr char kStateFile[] = "state.json";
inline constexpr char kConfigFile[] = "config.toml";

using TensorMap = std::map<std::string, norma::Tensor>;

/// safetensors. Failures to write are WriteErrors, as for all outputs.
void save_tensors(const TensorMap& tensors, const std::filesystem::path& path);
TensorMap load_tensors(const std::filesystem::path& path);

/// All parameters and buffers by name.
TensorMap module_tensors(const norma::nn::Module& module);

/// Copies tensors into a module. Throws norma::ValueError in one line, naming `path` and the first
/// name that does not fit, when they belong to another model.
void load_into(norma::nn::Module& module, const TensorMap& tensors,
               const std::filesystem::path& path);

TrainState load_state(const std::filesystem::path& checkpoint);
/// As `load_tokenizer`, with errors that name the file. Throws norma::FileError, too, for another
/// tokenizer than that of `state`: its words would have other numbers, without a trace in any
/// shape.
std::shared_ptr<const Tokenizer> load_tokenizer_file(const std::filesystem::path& checkpoint,
                                                     const TrainState& state);

}  // namespace imdb
