// Runs and checkpoints of `lm`, in imdb's layout: each checkpoint is complete in itself.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "imdb/train_state.h"
#include "lm/config.h"
#include "lm/tokenizer.h"

namespace lm {

/// Runs stand beside imdb's, under this folder.
inline constexpr char kRuns[] = "runs/lm";
inline constexpr char kTokenizerFile[] = "tokenizer.model";  ///< SentencePiece's own format

/// A trained model with what belongs to it.
struct LoadedModel {
  std::filesystem::path checkpoint;
  Config config;
  imdb::TrainState state;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<norma::nn::CausalLM> model;  ///< in eval mode
};

/// The tokenizer of a checkpoint. Throws norma::FileError, also for another than `state` names.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& checkpoint,
                                                const imdb::TrainState& state);
/// Loads what `--model` means: a run, a checkpoint, or nothing: the newest run in runs/lm.
LoadedModel load_model(const std::string& model, const norma::Device& device);

}  // namespace lm
