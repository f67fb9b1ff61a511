#include "norma/nn/embedding.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/nn/init.h"
#include "norma/ops/index.h"

namespace norma::nn {

Embedding::Embedding(std::int64_t rows, std::int64_t width, std::optional<std::int64_t> padding)
    : num_embeddings(rows), embedding_dim(width), padding_idx(padding) {
  check<ValueError>(rows > 0 && width > 0, "Embedding",
                    "num_embeddings and embedding_dim must be positive; got {} and {}", rows,
                    width);
  if (padding_idx) {
    check<ValueError>(*padding_idx >= -rows && *padding_idx < rows, "Embedding",
                      "padding_idx must be in [-num_embeddings, num_embeddings); got {} of {}",
                      *padding_idx, rows);
    if (*padding_idx < 0) *padding_idx += rows;
  }
  weight = empty({rows, width});
  register_parameter("weight", weight, ParameterKind::embedding);
  reset_parameters();
}

void Embedding::reset_parameters() { reset_parameters(1.0); }

void Embedding::reset_parameters(double std) {
  init::normal_(weight, 0.0, std);
  if (!padding_idx) return;
  NoGradGuard no_grad;
  weight.select(0, *padding_idx).zero_();
}

Tensor Embedding::forward(const Tensor& index) { return embedding(index, weight, padding_idx); }

std::string Embedding::extra_repr() const {
  std::string text = fmt::format("{}, {}", num_embeddings, embedding_dim);
  if (padding_idx) text += fmt::format(", padding_idx={}", *padding_idx);
  return text;
}

}  // namespace norma::nn
