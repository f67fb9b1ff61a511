// TransformerClassifier: text to class scores.
#pragma once

#include "norma/nn/embedding.h"
#include "norma/nn/transformer.h"

namespace norma::nn {

/// How the states of all tokens become one vector. Padding never counts.
enum class Pooling {
  mean,
  max,
  mean_max,  ///< both, concatenated: width 2 * d_model
  cls,       ///< the state of the first token
};

template <>
struct EnumNames<Pooling> {
  static constexpr const char* type = "Pooling";
  static constexpr auto values =
      std::to_array<std::pair<Pooling, std::string_view>>({{Pooling::mean, "mean"},
                                                           {Pooling::max, "max"},
                                                           {Pooling::mean_max, "mean_max"},
                                                           {Pooling::cls, "cls"}});
};

/// Pools states [batch, length, width]; `padding_mask` [batch, length] bool, true = padding,
/// undefined = none. A sequence of padding alone gives zeros for mean and max.
Tensor masked_pool(const Tensor& states, const Tensor& padding_mask, Pooling pooling);

struct ClassifierConfig {
  std::int64_t vocab_size = 0;
  std::int64_t num_classes = 2;
  std::int64_t max_length = 512;                ///< of learned positions
  std::optional<std::int64_t> padding_idx = 0;  ///< token of padding; its embedding stays zero
  std::int64_t bigram_buckets = 0;  ///< rows of the embedding of hashed bigrams; 0: none
  double embedding_std = 0.02;      ///< of the initial embeddings
  double embedding_dropout = 0.0;
  Pooling pooling = Pooling::mean;
  double head_dropout = 0.0;
  TransformerConfig encoder = {};

  /// Throws ValueError that names the fields of an impossible combination.
  void validate() const;
};

/// Embeddings (tokens, plus hashed bigrams, plus learned positions), dropout, encoder, pooling,
/// dropout, linear classifier.
///
/// Without positions, the default of TransformerConfig, the order of tokens does not count: set
/// `.positions` of the encoder to rope or learned.
///
/// The ngpt placement makes unit vectors of everything, so logits are multiplied by learned s_z
/// [num_classes], which stand for 1 and are stored as 1 / sqrt(d_model) (Loshchilov et al. 2024).
///
/// Parameters: token_embedding, bigram_embedding, position_embedding, encoder, classifier, s_z.
/// What stands at padded positions has no influence on the result, so a text gives the same scores
/// in every batch.
class TransformerClassifier : public Layer<TransformerClassifier> {
 public:
  explicit TransformerClassifier(const ClassifierConfig& config);
  /// tokens [batch, length] int64; key_padding_mask [batch, length] bool, true = padding; bigrams
  /// [batch, length] int64 in [0, bigram_buckets), 0 = no bigram. Returns logits [batch,
  /// num_classes].
  Tensor forward(const Tensor& tokens, const Tensor& key_padding_mask = {},
                 const Tensor& bigrams = {});

  const ClassifierConfig config;
  Embedding token_embedding;
  std::unique_ptr<Embedding> bigram_embedding;    ///< null without bigram_buckets
  std::unique_ptr<Embedding> position_embedding;  ///< null unless positions are learned
  Dropout embedding_dropout;
  TransformerEncoder encoder;
  Dropout head_dropout;
  Linear classifier;

  Tensor s_z;  ///< undefined but for ngpt

 private:
  Tensor embed(const Tensor& tokens, const Tensor& bigrams);
};

}  // namespace norma::nn
