// Embedding: a table of vectors looked up by index.
#pragma once

#include "norma/nn/layer.h"

#include <optional>

namespace norma::nn {

/// Indices [...] (int64) to vectors [..., embedding_dim]: rows of weight [num_embeddings,
/// embedding_dim], which starts as N(0, 1). The row `padding_idx` (negative: from the end) starts
/// as zeros and gets no gradient. As torch.nn.Embedding. Errors: IndexError for an index outside of
/// the table.
class Embedding : public Layer<Embedding> {
 public:
  Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim,
            std::optional<std::int64_t> padding_idx = std::nullopt);
  Tensor forward(const Tensor& index);
  void reset_parameters();
  /// N(0, std^2) with the padding row zero.
  void reset_parameters(double std);
  std::string extra_repr() const override;

  std::int64_t num_embeddings, embedding_dim;
  std::optional<std::int64_t> padding_idx;
  Tensor weight;
};

}  // namespace norma::nn
