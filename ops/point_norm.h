// Norms without statistics: element-wise functions that stand where a norm would, and the gains and
// caps that keep activations in range.
//
// Parameters have the input's dtype. Gradients of scalars and of weights are summed in float32
// (float64 for float64) in a fixed order.
#pragma once

#include "norma/core/tensor.h"

namespace norma {

/// tanh(alpha x) * weight + bias; alpha [1]; weight, bias [width] or undefined. With t = tanh(alpha
/// x) and q = dy weight (1 - t^2): dx = alpha q, dalpha = sum of q x, dweight = sum over rows of dy
/// t, dbias = sum over rows of dy. Recording keeps x alone. Source: Zhu et al., Transformers
/// without Normalization (arXiv 2503.10622).
Tensor dynamic_tanh(const Tensor& input, const Tensor& alpha, const Tensor& weight = {},
                    const Tensor& bias = {});

/// erf(alpha x + shift) * weight + bias; alpha, shift [1], shift may be undefined. q = dy weight 2
/// / sqrt(pi) exp(-(alpha x + shift)^2), dshift = sum of q, else as dynamic_tanh. Source: Stronger
/// Normalization-Free Transformers (arXiv 2512.10938).
Tensor dynamic_erf(const Tensor& input, const Tensor& alpha, const Tensor& shift = {},
                   const Tensor& weight = {}, const Tensor& bias = {});

/// x * gamma, gamma [width] (or [1]). Source: LayerScale of Touvron et al., Going Deeper with Image
/// Transformers (arXiv 2103.17239).
Tensor layer_scale(const Tensor& input, const Tensor& gamma);

/// x * gamma of its head: input [..., heads * head_dim], gamma [heads]. Source: head scale of
/// NormFormer (arXiv 2110.09456), before the output projection as in the paper.
Tensor head_scale(const Tensor& input, const Tensor& gamma);

/// cap * tanh(x / cap), cap > 0; dx = dy (1 - (y / cap)^2), from the output alone. For attention
/// scores it stands before the mask (see scaled_dot_product_attention). Source: Gemma 2 (arXiv
/// 2408.00118).
Tensor softcap(const Tensor& input, double cap);

namespace composite {
// The same in elementary operations.
Tensor dynamic_tanh(const Tensor& input, const Tensor& alpha, const Tensor& weight = {},
                    const Tensor& bias = {});
Tensor dynamic_erf(const Tensor& input, const Tensor& alpha, const Tensor& shift = {},
                   const Tensor& weight = {}, const Tensor& bias = {});
Tensor layer_scale(const Tensor& input, const Tensor& gamma);
Tensor head_scale(const Tensor& input, const Tensor& gamma);
Tensor softcap(const Tensor& input, double cap);
}  // namespace composite

}  // namespace norma
