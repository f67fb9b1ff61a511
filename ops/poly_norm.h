// PolyNorm: a normalized polynomial as the activation of a feed-forward network.
#pragma once

#include "norma/core/tensor.h"

namespace norma {

/// w0 n(x^3) + w1 n(x^2) + w2 n(x) + bias over the last dimension, n(u) = u / sqrt(mean(u^2) +
/// eps); weight [3], bias [1] or undefined. With S_p = sum of dy x^p and r_p the factor of n(x^p):
/// dx = sum over p of w_p p x^(p-1) (r_p dy - r_p^3 S_p x^p / width), dw_p = sum over rows of r_p
/// S_p. Recording keeps x and three statistics a row. Source: Zhuo et al., Polynomial Composition
/// Activations (arXiv 2411.03884); Liger Kernel.
Tensor poly_norm(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                 double eps = 1e-6);

namespace composite {
/// The same in elementary operations.
Tensor poly_norm(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                 double eps = 1e-6);
}  // namespace composite

}  // namespace norma
