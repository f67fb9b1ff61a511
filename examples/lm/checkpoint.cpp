#include "lm/checkpoint.h"

#include "imdb/checkpoint.h"
#include "imdb/files.h"
#include "imdb/words.h"
#include "norma/core/error.h"

namespace lm {

namespace fs = std::filesystem;

std::shared_ptr<const Tokenizer> load_tokenizer(const fs::path& checkpoint,
                                                const imdb::TrainState& state) {
  const fs::path path = checkpoint / kTokenizerFile;
  std::string model = imdb::read_file(path);
  norma::check<norma::FileError>(imdb::hash_bytes(model) == state.tokenizer_hash, "checkpoint",
                                 "{} must be the tokenizer that the model was trained with; got "
                                 "another; put back that of its own run",
                                 path.string());
  return std::make_shared<const Tokenizer>(std::move(model));
}

LoadedModel load_model(const std::string& model, const norma::Device& device) {
  LoadedModel loaded;
  loaded.checkpoint = imdb::find_checkpoint(model, "lm", kRuns);
  loaded.config = read_config(loaded.checkpoint / imdb::kConfigFile);
  loaded.state = imdb::load_state(loaded.checkpoint);
  loaded.tokenizer = load_tokenizer(loaded.checkpoint, loaded.state);
  loaded.model = std::make_unique<norma::nn::CausalLM>(
      model_config(loaded.config, loaded.tokenizer->vocab_size()));
  const fs::path weights = loaded.checkpoint / imdb::kModelFile;
  imdb::load_into(*loaded.model, imdb::load_tensors(weights), weights);
  loaded.model->to(device);
  loaded.model->eval();
  return loaded;
}

}  // namespace lm
