// Layers whose weights are kept on a sphere. Formulas, gradients and sources stand in
// ops/weight_norm.h.
#pragma once

#include "norma/nn/embedding.h"
#include "norma/nn/linear.h"

namespace norma::nn {

/// Linear with weight = weight_g * weight_v / |weight_v| for each output: parameters weight_g [out,
/// 1], weight_v [out, in], bias, as torch.nn.utils.weight_norm names them. weight_g starts as the
/// norms of weight_v, so that the layer starts as Linear does.
class WeightNormLinear : public Layer<WeightNormLinear> {
 public:
  WeightNormLinear(std::int64_t in_features, std::int64_t out_features, bool bias = true);
  Tensor forward(const Tensor& x);
  Tensor weight_g, weight_v, bias;  ///< bias undefined without it
};

/// Linear with weight = weight_orig / sigma, its largest singular value estimated by one power
/// iteration each forward in training. Parameters weight_orig, bias, buffers weight_u, weight_v, as
/// torch.nn.utils.spectral_norm names them; they start after 15 iterations.
class SpectralNormLinear : public Layer<SpectralNormLinear> {
 public:
  SpectralNormLinear(std::int64_t in_features, std::int64_t out_features, bool bias = true,
                     std::int64_t n_power_iterations = 1, double eps = 1e-12);
  Tensor forward(const Tensor& x);
  std::int64_t n_power_iterations;
  double eps;
  Tensor weight_orig, bias;   ///< bias undefined without it
  Tensor weight_u, weight_v;  ///< [out], [in]
};

/// FixNorm: an embedding whose vectors are unit vectors, times one learned g [1] that starts as
/// sqrt(width), as ScaleNorm does. Source: Nguyen, Salazar 2019.
class FixNormEmbedding : public Layer<FixNormEmbedding> {
 public:
  FixNormEmbedding(std::int64_t num_embeddings, std::int64_t embedding_dim,
                   std::optional<std::int64_t> padding_idx = std::nullopt);
  Tensor forward(const Tensor& index);
  Embedding embedding;
  Tensor g;
};

/// The step of nGPT: every matrix of the model gets unit vectors along the axis of the embedding.
/// That is the input axis of all Linear layers but o_proj, fc2 and down_proj, whose output it is,
/// and the width of Embedding. In place, off the tape.
void normalize_matrices_(Module& model);

/// Gives these matrices the kind ParameterKind::sphere, so that they do not decay. Models with the
/// ngpt placement do it themselves.
void mark_unit_matrices(Module& model);

}  // namespace norma::nn
