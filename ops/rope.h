// Rotary position embedding (RoPE).
//
// Source: Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021
// (arXiv:2104.09864).
#pragma once

#include "norma/core/tensor.h"

namespace norma {

/// cos and sin of the rotation angles, [length, rotary_dim / 2] each; constants without gradient.
struct RopeTables {
  Tensor cos;
  Tensor sin;
};

/// Angles p * base^(-2 i / rotary_dim) for positions p = offset … offset + length - 1 and i = 0 …
/// rotary_dim / 2 - 1.
///
/// Computed in float64, so exact to the last bit of the result at any position; float32 unless the
/// options say otherwise. `offset` continues a sequence (generation with a key-value cache). Throws
/// ValueError unless rotary_dim is even and positive, length and offset not negative, base
/// positive.
RopeTables rope_tables(std::int64_t length, std::int64_t rotary_dim, double base = 10000.0,
                       std::int64_t offset = 0, const TensorOptions& options = {});

/// Options of apply_rope().
struct RopeOptions {
  /// Rotate neighbours (2i, 2i + 1), as the paper and GPT-J, instead of (i, i + rotary_dim / 2), as
  /// Llama and Hugging Face.
  bool interleaved = false;
};

/// Rotates each pair (a, b) of x [..., length, head_dim] by the angle of its position: (a cos - b
/// sin, b cos + a sin).
///
/// cos, sin [length, rotary_dim / 2] from rope_tables(). Columns from rotary_dim on stay as they
/// are (partial rotary dimensions). The result has the memory order of x: heads split from a
/// projection are not copied. Computed in float32 (float64 for float64). Gradient: the inverse
/// rotation.
///
/// Throws ShapeError where tables and x do not fit, DTypeError for x not floating point, ValueError
/// for tables that require grad.
Tensor apply_rope(const Tensor& x, const Tensor& cos, const Tensor& sin,
                  const RopeOptions& options = {});
inline Tensor apply_rope(const Tensor& x, const RopeTables& tables,
                         const RopeOptions& options = {}) {
  return apply_rope(x, tables.cos, tables.sin, options);
}

namespace composite {
/// The definition of norma::apply_rope in elementary operations.
Tensor apply_rope(const Tensor& x, const Tensor& cos, const Tensor& sin,
                  const RopeOptions& options = {});
}  // namespace composite

}  // namespace norma
