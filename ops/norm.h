// Normalization over the last dimensions: LayerNorm and RMSNorm.
//
// Statistics are float32 inside for float32 and 16-bit types (float64 for float64). Recording keeps
// the input and two (RMSNorm: one) statistics a row, never the normalized values. Gradients of
// weight and bias are summed in a fixed order: results repeat bit for bit. A gradient that is not
// needed is not computed.
#pragma once

#include "norma/core/tensor.h"

#include <optional>

namespace norma {

/// (x - mean) / sqrt(var + eps) * weight + bias, with mean and biased variance over the last
/// dimensions, whose sizes are `normalized_shape`. weight and bias have that shape and the input's
/// dtype; each may be undefined. The variance is two-pass: also right where the mean is large.
/// Throws ShapeError, DTypeError, ValueError (eps < 0). As torch.nn.functional.layer_norm; Ba,
/// Kiros, Hinton: Layer Normalization (arXiv 1607.06450).
Tensor layer_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);

/// x / sqrt(mean(x^2) + eps) * weight over the last dimensions. Without `eps`: the machine epsilon
/// of the type of the statistics (float32: 1.19e-7). Else as layer_norm. As
/// torch.nn.functional.rms_norm; Zhang, Sennrich: Root Mean Square Layer Normalization (arXiv
/// 1910.07467).
Tensor rms_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = std::nullopt);

namespace composite {
// The same in elementary operations.
Tensor layer_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);
Tensor rms_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = std::nullopt);
}  // namespace composite

}  // namespace norma
