// What tells one norm from another in the kernels: the parameters of the row norms and the curves
// of the element-wise ones. One kernel serves each family.
#pragma once

#include "norma/core/philox.h"

#include <cstdint>

namespace norma {

/// The divisor D of a row norm; m is the mean of squares (the sum, where `divisor` is 1).
enum class EpsRule : std::uint8_t {
  inside,   ///< sqrt(m + eps)
  outside,  ///< sqrt(m) + eps
  floor,    ///< max(sqrt(m), eps)
};

/// One member of the family of row norms. For each row, in the accumulate type:
///
///     d = x, or x - mean(x) where centred
///     m = (sum of d_i^2 over i < statistic_width, plus (sum of x)^2 where compressed) / divisor
///     h = d / D, with D from m by eps_rule
///     factor = 1 - detached_slope * h, a constant to the backward
///     out = scale * (h * factor * (weight_offset + weight) + bias)
///
/// weight and bias are [W, C] with C a divisor of the width: element i of row r takes row
/// (r / weight_repeat) % W and column i / (width / C) of them; the number of rows is a multiple of
/// W * weight_repeat. So [1, width] is a gain for each element, [1, 1] one for all (ScaleNorm),
/// [heads, width] one row a head (QK-norm), [samples, width] with weight_repeat rows a sample
/// modulates (AdaLN), and [groups, channels of a group] is GroupNorm. Either may be undefined;
/// without weight the gain is 1, whatever weight_offset.
///
/// Backward, with r = 1 / D, g = scale * dy * factor * (weight_offset + weight), G = sum of g h:
///
///     t = r (g - mean(g) where centred) - (i < statistic_width ? v G c : 0) + dsum
///     v = h, or (x + sum(x)) r where compressed
///     c = r / divisor             (inside)
///       = 1 / (divisor root)      (outside: root = 1 / r - eps; 0 where root <= 0)
///       = r / divisor             (floor; 0 where r eps >= 1)
///     dx = t through the mask of dropout, dresidual = alpha t
///     dweight = scale * sum of dy h factor, dbias = scale * sum of dy
struct RowNormParams {
  bool centred = false;
  bool compressed = false;           ///< CRMSNorm: an element -sum(x) is not stored but counts
  std::int64_t statistic_width = 0;  ///< the width, but for pRMSNorm
  double divisor = 1.0;              ///< the width for means of squares; 1 for sums
  EpsRule eps_rule = EpsRule::inside;
  double eps = 0.0;
  double detached_slope = 0.0;    ///< AdaNorm
  double weight_offset = 0.0;     ///< 1 for Gemma's (1 + weight)
  bool round_normalized = false;  ///< Llama: h is rounded to the dtype of x before the weight
  double scale = 1.0;
  std::int64_t weight_repeat = 1;
  // Where a residual is given, what is normalized is alpha * residual + dropout(x), rounded to the
  // dtype of x.
  double alpha = 1.0;
  double dropout_p = 0.0;
  PhiloxState philox = {};  ///< word i decides element i of x, as in `dropout`
};

/// The curve of an element-wise norm: identity for LayerScale and head scale, tanh for DyT, erf for
/// Derf.
enum class Squash : std::uint8_t { identity, tanh, erf };

}  // namespace norma
