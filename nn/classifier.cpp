#include "norma/nn/classifier.h"

#include "norma/core/factory.h"
#include "norma/nn/weight_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/index.h"
#include "norma/ops/reduction.h"

#include <cmath>
#include <limits>

namespace norma::nn {

namespace {

Tensor mean_pool(const Tensor& states, const Tensor& padding_mask) {
  if (!padding_mask.defined()) return states.mean({1});
  const Tensor padded = padding_mask.to(states.dtype()).sum({1}, true);  // [batch, 1]
  const Tensor count = clamp(static_cast<double>(states.size(1)) - padded, 1.0);
  return masked_fill(states, padding_mask.unsqueeze(-1), 0.0).sum({1}) / count;
}

Tensor max_pool(const Tensor& states, const Tensor& padding_mask) {
  if (!padding_mask.defined()) return amax(states, {1});
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  const Tensor largest = amax(masked_fill(states, padding_mask.unsqueeze(-1), lowest), {1});
  return masked_fill(largest, largest == lowest, 0.0);  // nothing but padding
}

const ClassifierConfig& validated(const ClassifierConfig& config) {
  config.validate();
  return config;
}

/// What s_z is multiplied with: it is stored small, for steps of the optimizer that fit.
double sphere_scale(const ClassifierConfig& config) {
  return std::sqrt(static_cast<double>(config.encoder.d_model));
}

std::unique_ptr<Embedding> optional_embedding(bool wanted, std::int64_t rows, std::int64_t width,
                                              std::optional<std::int64_t> padding_idx) {
  return wanted ? std::make_unique<Embedding>(rows, width, padding_idx) : nullptr;
}

}  // namespace

Tensor masked_pool(const Tensor& states, const Tensor& padding_mask, Pooling pooling) {
  check<ShapeError>(states.dim() == 3 && states.size(1) > 0, "masked_pool",
                    "states must be [batch, length, width] with a positive length; got {}",
                    states.shape());
  if (padding_mask.defined()) {
    check<ShapeError>(padding_mask.shape() == Shape{states.size(0), states.size(1)}, "masked_pool",
                      "padding_mask must be [batch, length] of states {}; got {}", states.shape(),
                      padding_mask.shape());
    check<DTypeError>(padding_mask.dtype() == bool_, "masked_pool",
                      "padding_mask must be bool, true = padding; got {}", padding_mask.dtype());
  }
  switch (pooling) {
    case Pooling::mean:
      return mean_pool(states, padding_mask);
    case Pooling::max:
      return max_pool(states, padding_mask);
    case Pooling::mean_max:
      return cat({mean_pool(states, padding_mask), max_pool(states, padding_mask)}, 1);
    case Pooling::cls:
      break;
  }
  return states.select(1, 0);
}

void ClassifierConfig::validate() const {
  constexpr const char* name = "ClassifierConfig";
  check<ValueError>(vocab_size > 0 && num_classes > 0 && max_length > 0, name,
                    "vocab_size, num_classes and max_length must be positive; got vocab_size = {}, "
                    "num_classes = {}, max_length = {}",
                    vocab_size, num_classes, max_length);
  check<ValueError>(!padding_idx || (*padding_idx >= 0 && *padding_idx < vocab_size), name,
                    "padding_idx must be a token in [0, vocab_size); got padding_idx = {}, "
                    "vocab_size = {}",
                    padding_idx.value_or(0), vocab_size);
  check<ValueError>(bigram_buckets >= 0, name, "bigram_buckets must be at least 0; got {}",
                    bigram_buckets);
  check<ValueError>(embedding_std >= 0.0, name, "embedding_std must be at least 0; got {}",
                    embedding_std);
  const auto check_probability = [&](const char* field, double p) {
    check<ValueError>(p >= 0.0 && p <= 1.0, name, "{} must be in [0, 1]; got {}", field, p);
  };
  check_probability("embedding_dropout", embedding_dropout);
  check_probability("head_dropout", head_dropout);
  encoder.validate();
}

TransformerClassifier::TransformerClassifier(const ClassifierConfig& options)
    : config(validated(options)),
      token_embedding(config.vocab_size, config.encoder.d_model, config.padding_idx),
      bigram_embedding(optional_embedding(config.bigram_buckets > 0, config.bigram_buckets,
                                          config.encoder.d_model, 0)),
      position_embedding(optional_embedding(config.encoder.positions == Positions::learned,
                                            config.max_length, config.encoder.d_model,
                                            std::nullopt)),
      embedding_dropout(config.embedding_dropout),
      encoder(config.encoder),
      head_dropout(config.head_dropout),
      classifier((config.pooling == Pooling::mean_max ? 2 : 1) * config.encoder.d_model,
                 config.num_classes) {
  register_module("token_embedding", token_embedding);
  token_embedding.reset_parameters(config.embedding_std);
  for (const auto& [name, table] : {std::pair("bigram_embedding", bigram_embedding.get()),
                                    std::pair("position_embedding", position_embedding.get())}) {
    if (table == nullptr) continue;
    register_module(name, *table);
    table->reset_parameters(config.embedding_std);
  }
  register_module("embedding_dropout", embedding_dropout);
  register_module("encoder", encoder);
  register_module("head_dropout", head_dropout);
  register_module("classifier", classifier);
  if (config.encoder.placement != NormPlacement::ngpt) return;
  detail::add_norm_parameter(*this, "s_z", s_z, {config.num_classes}, 1.0 / sphere_scale(config));
  mark_unit_matrices(*this);
}

Tensor TransformerClassifier::embed(const Tensor& tokens, const Tensor& bigrams) {
  constexpr const char* name = "TransformerClassifier";
  check<ShapeError>(tokens.dim() == 2, name, "tokens must be [batch, length]; got {}",
                    tokens.shape());
  check<ValueError>(bigrams.defined() == (bigram_embedding != nullptr), name,
                    "bigrams must be given exactly when bigram_buckets > 0; got {} with "
                    "bigram_buckets = {}",
                    bigrams.defined() ? "bigrams" : "none", config.bigram_buckets);
  Tensor x = token_embedding(tokens);
  if (bigram_embedding) {
    check<ShapeError>(bigrams.shape() == tokens.shape(), name,
                      "bigrams must have the shape of tokens {}; got {}", tokens.shape(),
                      bigrams.shape());
    x = x + (*bigram_embedding)(bigrams);
  }
  if (position_embedding) {
    const std::int64_t length = tokens.size(1);
    check<ShapeError>(length <= config.max_length, name,
                      "length must be at most max_length = {} of the learned positions; got {}; "
                      "truncate the text",
                      config.max_length, length);
    x = x + position_embedding->weight.narrow(0, 0, length);
  }
  return embedding_dropout(x);
}

Tensor TransformerClassifier::forward(const Tensor& tokens, const Tensor& key_padding_mask,
                                      const Tensor& bigrams) {
  const Tensor states = encoder(embed(tokens, bigrams), key_padding_mask);
  const Tensor logits =
      classifier(head_dropout(masked_pool(states, key_padding_mask, config.pooling)));
  return s_z.defined() ? logits * (s_z * sphere_scale(config)) : logits;
}

}  // namespace norma::nn
