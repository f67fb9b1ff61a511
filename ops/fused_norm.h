// Norms fused with what stands around them in a Transformer block: the residual sum before the
// norm, and the second norm of a parallel block.
#pragma once

#include "norma/ops/norm.h"

#include <utility>

namespace norma {

/// What happens before the norm.
struct ResidualOptions {
  double alpha = 1.0;      ///< of the residual: DeepNorm's
  double dropout_p = 0.0;  ///< on x; takes numel words from the default generator
  bool training = true;    ///< else there is no dropout
  NormOptions norm = {};   ///< eps by default that of the norm
};

/// {y, sum} with sum = alpha * residual + dropout(x), rounded to the input's dtype, and y =
/// layer_norm(sum). One pass: x and residual are read once. With t = dsum + the gradient of y by
/// sum, dresidual = alpha t, and dx = t through the mask of dropout: the gradient of the residual
/// stream passes the norm by. x and residual have one shape, dtype and device.
std::pair<Tensor, Tensor> add_layer_norm(const Tensor& x, const Tensor& residual,
                                         const Shape& normalized_shape, const Tensor& weight = {},
                                         const Tensor& bias = {},
                                         const ResidualOptions& options = {});
/// The same with rms_norm.
std::pair<Tensor, Tensor> add_rms_norm(const Tensor& x, const Tensor& residual,
                                       const Shape& normalized_shape, const Tensor& weight = {},
                                       const Tensor& bias = {},
                                       const ResidualOptions& options = {});

/// Weights [width] of the two norms of one input; each may be undefined.
struct DualNormWeights {
  Tensor weight1 = {}, bias1 = {};
  Tensor weight2 = {}, bias2 = {};
};

/// {layer_norm(x, weight1, bias1), layer_norm(x, weight2, bias2)} over the last dimension, for the
/// attention and the feed-forward of a parallel block: x is read and its statistics computed once.
/// dx = r (g - mean(g) - h mean(g h)) with g = dy1 weight1 + dy2 weight2. Of `options`: eps,
/// eps_rule, unit_offset. Source: dual norm of FlashAttention's layer_norm.
std::pair<Tensor, Tensor> dual_layer_norm(const Tensor& x, const DualNormWeights& weights,
                                          const NormOptions& options = {});
std::pair<Tensor, Tensor> dual_rms_norm(const Tensor& x, const DualNormWeights& weights,
                                        const NormOptions& options = {});

namespace detail {
/// add_layer_norm (or add_rms_norm) with the random words that `state` stands for.
std::pair<Tensor, Tensor> add_norm(bool centred, const Tensor& x, const Tensor& residual,
                                   const Shape& normalized_shape, const Tensor& weight,
                                   const Tensor& bias, const ResidualOptions& options,
                                   const PhiloxState& state);
}  // namespace detail

namespace composite {
std::pair<Tensor, Tensor> add_norm(bool centred, const Tensor& x, const Tensor& residual,
                                   const Shape& normalized_shape, const Tensor& weight,
                                   const Tensor& bias, const ResidualOptions& options,
                                   const PhiloxState& state);
std::pair<Tensor, Tensor> dual_layer_norm(const Tensor& x, const DualNormWeights& weights,
                                          const NormOptions& options = {});
std::pair<Tensor, Tensor> dual_rms_norm(const Tensor& x, const DualNormWeights& weights,
                                        const NormOptions& options = {});
}  // namespace composite

}  // namespace norma
