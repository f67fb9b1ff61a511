#include "imdb/model.h"

#include "norma/core/factory.h"
#include "norma/nn/init.h"

namespace imdb {

namespace nn = norma::nn;

nn::ClassifierConfig make_classifier_config(const TrainConfig& c, std::int64_t vocabulary) {
  nn::ClassifierConfig m;
  m.vocab_size = vocabulary;
  m.num_classes = 2;
  m.max_length = c.max_length;
  m.padding_idx = Tokenizer::pad_id;
  m.bigram_buckets = c.bigram_buckets;
  m.embedding_std = c.embedding_std;
  m.embedding_dropout = c.embedding_dropout;
  m.pooling = nn::parse<nn::Pooling>(c.pooling);
  m.head_dropout = c.head_dropout;
  m.encoder.d_model = c.d_model;
  m.encoder.num_heads = c.heads;
  m.encoder.num_kv_heads = c.kv_heads;
  m.encoder.d_ff = c.d_ff;
  m.encoder.num_layers = c.layers;
  m.encoder.activation = nn::parse<decltype(m.encoder.activation)>(c.ffn);
  m.encoder.norm = nn::parse<nn::NormKind>(c.norm);
  m.encoder.placement = nn::parse<nn::NormPlacement>(c.placement);
  m.encoder.dropout = c.dropout;
  m.encoder.attention_dropout = c.attention_dropout;
  m.encoder.positions = nn::parse<nn::Positions>(c.positions);
  m.encoder.qk_norm = c.qk_norm ? nn::NormKind::rms_norm : nn::NormKind::none;
  m.validate();
  return m;
}

namespace {

// Uniform values of Glorot and Bengio in the matrices of the blocks and zeros in their biases, as
// the Transformer of 2017 and DeepNet start.
void start_as_xavier(nn::TransformerEncoder& encoder) {
  for (const auto& parameter : encoder.named_parameters()) {
    if (parameter.kind == nn::ParameterKind::matrix || parameter.kind == nn::ParameterKind::sphere)
      nn::init::xavier_uniform_(parameter.tensor);
    else if (parameter.kind == nn::ParameterKind::bias)
      nn::init::zeros_(parameter.tensor);
  }
  for (nn::TransformerBlock& block : encoder.layers) block.scale_initial_values();
}

}  // namespace

std::unique_ptr<nn::TransformerClassifier> make_model(const TrainConfig& config,
                                                      std::int64_t vocabulary,
                                                      const norma::Device& device) {
  auto model =
      std::make_unique<nn::TransformerClassifier>(make_classifier_config(config, vocabulary));
  if (config.init == "xavier") start_as_xavier(model->encoder);
  if (!device.is_cpu()) model->to(device);
  return model;
}

BatchOptions make_batch_options(const TrainConfig& c) {
  BatchOptions options;
  options.batch_size = c.batch_size;
  options.max_length = c.max_length;
  options.head = c.head_length;
  options.cls = c.pooling == "cls";
  options.bigram_buckets = c.bigram_buckets;
  return options;
}

BatchTensors to_tensors(const Batch& batch, const norma::Device& device) {
  const norma::Shape shape{batch.size, batch.length};
  BatchTensors tensors;
  tensors.tokens = norma::from_values(batch.tokens, shape).to(device);
  if (batch.real_tokens < batch.size * batch.length) {
    const norma::Tensor mask = norma::empty(shape, {.dtype = norma::DType::bool_});
    bool* padding = mask.data<bool>();
    for (std::size_t i = 0; i < batch.mask.size(); ++i) padding[i] = batch.mask[i] == 0;
    tensors.padding_mask = mask.to(device);
  }
  if (!batch.bigrams.empty()) tensors.bigrams = norma::from_values(batch.bigrams, shape).to(device);
  tensors.labels = norma::from_values(batch.labels, {batch.size}).to(device);
  return tensors;
}

}  // namespace imdb
