#include "imdb/checkpoint.h"

#include "imdb/files.h"
#include "imdb/words.h"
#include "norma/core/safetensors.h"

namespace imdb {

namespace fs = std::filesystem;

void save_tensors(const TensorMap& tensors, const fs::path& path) {
  try {
    norma::safetensors::save_file(tensors, path, {{"format", "pt"}});
  } catch (const norma::FileError& error) {
    throw WriteError(error);
  }
}

TensorMap load_tensors(const fs::path& path) { return norma::safetensors::load_file(path).tensors; }

TensorMap module_tensors(const norma::nn::Module& module) {
  TensorMap tensors;
  for (const auto& [name, tensor] : module.state_dict()) tensors.emplace(name, tensor);
  return tensors;
}

void load_into(norma::nn::Module& module, const TensorMap& tensors, const fs::path& path) {
  const auto own = module.state_dict();
  const auto refuse = [&](const std::string& why) {
    throw norma::ValueError("checkpoint",
                            fmt::format("{} holds another model than its config.toml describes: {}",
                                        path.string(), why));
  };
  norma::nn::StateDict state;
  for (const auto& [name, tensor] : tensors) {
    const norma::Tensor* mine = own.find(name);
    if (mine == nullptr) refuse(fmt::format("\"{}\" has no place", name));
    if (mine->shape() != tensor.shape())
      refuse(fmt::format("\"{}\" must be {}; got {}", name, mine->shape(), tensor.shape()));
    state.insert(name, tensor);
  }
  for (const auto& [name, tensor] : own)
    if (!state.contains(name)) refuse(fmt::format("\"{}\" is missing", name));
  module.load_state_dict(state);
}

TrainState load_state(const fs::path& checkpoint) {
  const auto path = checkpoint / kStateFile;
  return train_state_from_json(read_file(path), path.string());
}

std::shared_ptr<const Tokenizer> load_tokenizer_file(const fs::path& checkpoint,
                                                     const TrainState& state) {
  const auto path = checkpoint / kTokenizerFile;
  const std::string blob = read_file(path);
  std::shared_ptr<const Tokenizer> tokenizer;
  try {
    tokenizer = load_tokenizer(blob);
  } catch (const norma::Error& error) {
    throw norma::FileError("checkpoint", fmt::format("{}: {}", path.string(), error.what()));
  }
  norma::check<norma::FileError>(
      hash_bytes(blob) == state.tokenizer_hash, "checkpoint",
      "{} must be the tokenizer that the model was trained with; got another; put back that of "
      "its own run",
      path.string());
  return tokenizer;
}

}  // namespace imdb
