// Norms of rows: each normalizes over the last dimensions by their own statistics.
//
// Statistics are float32 inside for float32 and 16-bit types (float64 for float64). Recording keeps
// the input and two (not centred: one) statistics a row, never the normalized values. Gradients of
// weight and bias are summed in a fixed order: results repeat bit for bit. A gradient that is not
// needed is not computed. Below, h is the normalized input, g = dy * gain, r = 1 / divisor, and
// means are over the normalized elements.
//
// Weight and bias have the shape `normalized_shape` and the input's dtype; either may be undefined.
// They may have further leading dimensions, which are those of the input that stand before the
// normalized ones, the last of them possibly 1: [heads, head_dim] for an input [batch, length,
// heads, head_dim] is one gain a head, [batch, 1, width] for [batch, length, width] one a sample.
//
// All throw ShapeError, DTypeError, DeviceError for inputs that do not fit, ValueError for eps < 0.
#pragma once

#include "norma/core/tensor.h"
#include "norma/ops/norm_params.h"

#include <optional>

namespace norma {

/// What varies between published forms of LayerNorm and RMSNorm.
struct NormOptions {
  std::optional<double> eps = std::nullopt;  ///< default: that of the norm
  EpsRule eps_rule = EpsRule::inside;        ///< outside: the original RMSNorm, GPT-NeoX
  bool unit_offset = false;         ///< gain is 1 + weight, summed in the accumulate type: Gemma
  bool cast_before_weight = false;  ///< h is rounded to the input's dtype before the weight: Llama
  double scale = 1.0;               ///< of the result: 1 / sqrt(layer) for LayerNorm scaling
};

/// h * weight + bias with h = (x - mean) / sqrt(var + eps), biased variance. The variance is
/// two-pass: also right where the mean is large. dx = r (g - mean(g) - h mean(g h)). As
/// torch.nn.functional.layer_norm; Ba, Kiros, Hinton: Layer Normalization (arXiv 1607.06450).
Tensor layer_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);
Tensor layer_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                  const Tensor& bias, const NormOptions& options);

/// x / sqrt(mean(x^2) + eps) * weight. Without `eps`: the machine epsilon of the type of the
/// statistics (float32: 1.19e-7). dx = r (g - h mean(g h)). As torch.nn.functional.rms_norm; Zhang,
/// Sennrich: Root Mean Square Layer Normalization (arXiv 1910.07467). The weight multiplies before
/// the result is rounded to the input's dtype, as in PyTorch and Gemma, unless options say else.
Tensor rms_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = std::nullopt);
Tensor rms_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                const Tensor& bias, const NormOptions& options);

/// RMSNorm over the last dimension with the mean square of its first int(width * p) elements only
/// (at least one), p in (0, 1]. dx = r (g - h sum(g h) / k) for the first k elements, r g for the
/// others. Source: pRMSNorm of Zhang and Sennrich (p = 0.0625).
Tensor p_rms_norm(const Tensor& input, double p, const Tensor& weight = {}, const Tensor& bias = {},
                  const NormOptions& options = {});

/// RMSNorm of a vector with zero mean that is stored without its last element -sum(x): x *
/// weight / sqrt((sum(x^2) + sum(x)^2) / (width + 1) + eps). dx = r g - r^3 sum(g x) (x + sum(x)) /
/// (width + 1). Source: Jiang et al., Pre-RMSNorm and Pre-CRMSNorm Transformers (arXiv 2305.14858).
Tensor crms_norm(const Tensor& input, const Tensor& weight = {}, double eps = 1e-8);

/// x / max(|x|, eps) along `dim`, |x| the Euclidean norm. dx = (g - h sum(g h)) / |x|, and g / eps
/// where |x| <= eps. As torch.nn.functional.normalize(p=2). With EpsRule::inside: x / sqrt(|x|^2 +
/// eps), the L2 normalization of TransformerEngine (eps 1e-6). eps = 0 is nGPT's unit norm: NaN for
/// a zero vector.
Tensor normalize(const Tensor& input, std::int64_t dim = -1, double eps = 1e-12,
                 EpsRule eps_rule = EpsRule::floor);

/// g x / max(|x|, eps) over the last dimension, g a learned scalar of shape [1] that starts as
/// sqrt(width). dg = sum over rows of sum(dy h). Source: Nguyen, Salazar: Transformers without
/// Tears (arXiv 1910.05895).
Tensor scale_norm(const Tensor& input, const Tensor& g, double eps = 1e-5);

/// sqrt(width) x / max(|x|, eps), times weight (or 1 + weight) where there is one. Source:
/// SimpleRMSNorm of TransNormer (Qin et al., arXiv 2307.14995) and, with weight and unit_offset,
/// RMSNorm of x-transformers.
Tensor simple_rms_norm(const Tensor& input, const Tensor& weight = {}, bool unit_offset = false,
                       double eps = 1e-12);

/// LayerNorm without affine, times (1 + scale) plus shift, of one sample each: scale and shift
/// [samples, width] (shift may be undefined) for an input [samples, …, width]. dscale = sum over
/// the rows of a sample of dy h. Source: adaptive LayerNorm of DiT (Peebles, Xie, arXiv
/// 2212.09748).
Tensor ada_layer_norm(const Tensor& input, const Tensor& scale, const Tensor& shift = {},
                      double eps = 1e-5);
/// The same on RMSNorm with weight [width]: h * weight * (1 + scale) + shift. Of `options`: eps,
/// eps_rule and unit_offset. Source: modulated RMSNorm of Liger Kernel.
Tensor modulated_rms_norm(const Tensor& input, const Tensor& weight, const Tensor& scale,
                          const Tensor& shift = {}, const NormOptions& options = {});

/// c (1 - k h) h with h as in LayerNorm; the factor c (1 - k h) is a constant to the backward: g =
/// dy c (1 - k h). Source: Xu et al., Understanding and Improving Layer Normalization (arXiv
/// 1911.07013).
Tensor ada_norm(const Tensor& input, const Shape& normalized_shape, double c = 1.0, double k = 0.1,
                double eps = 1e-5);

namespace composite {
// The same in elementary operations.
Tensor layer_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);
Tensor layer_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                  const Tensor& bias, const NormOptions& options);
Tensor rms_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = std::nullopt);
Tensor rms_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                const Tensor& bias, const NormOptions& options);
Tensor p_rms_norm(const Tensor& input, double p, const Tensor& weight = {}, const Tensor& bias = {},
                  const NormOptions& options = {});
Tensor crms_norm(const Tensor& input, const Tensor& weight = {}, double eps = 1e-8);
Tensor normalize(const Tensor& input, std::int64_t dim = -1, double eps = 1e-12,
                 EpsRule eps_rule = EpsRule::floor);
Tensor scale_norm(const Tensor& input, const Tensor& g, double eps = 1e-5);
Tensor simple_rms_norm(const Tensor& input, const Tensor& weight = {}, bool unit_offset = false,
                       double eps = 1e-12);
Tensor ada_layer_norm(const Tensor& input, const Tensor& scale, const Tensor& shift = {},
                      double eps = 1e-5);
Tensor modulated_rms_norm(const Tensor& input, const Tensor& weight, const Tensor& scale,
                          const Tensor& shift = {}, const NormOptions& options = {});
Tensor ada_norm(const Tensor& input, const Shape& normalized_shape, double c = 1.0, double k = 0.1,
                double eps = 1e-5);
}  // namespace composite

}  // namespace norma
