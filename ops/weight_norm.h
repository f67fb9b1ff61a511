// Norms of weights: reparametrizations of a matrix, and steps that keep it on a sphere.
#pragma once

#include "norma/core/tensor.h"

#include <optional>

namespace norma {

/// g v / |v|, where |v| is the Euclidean norm over all dimensions but `dim` (without dim: over
/// all), and g has the shape of |v| with reduced dimensions kept as 1 (without dim: a scalar). dg =
/// <dW, v> / |v|, dv = g / |v| (dW - dg v / |v|). Statistics in float32 for 16-bit types. As
/// torch._weight_norm; Salimans, Kingma: Weight Normalization (arXiv 1602.07868).
Tensor weight_norm(const Tensor& v, const Tensor& g, std::optional<std::int64_t> dim = 0);

/// weight / sigma, where sigma = u^T W v estimates the largest singular value of the weight seen as
/// a matrix W [size of dim, rest]. u and v are unit vectors that `n_power_iterations` steps improve
/// in place first (0: none, as evaluation must); they are constants to the gradient: dweight = (dW
/// - <dW, W / sigma> u v^T) / sigma. As torch.nn.utils.parametrizations.spectral_norm; Miyato et
/// al., Spectral Normalization (arXiv 1802.05957). Throws ShapeError for a weight without elements.
Tensor spectral_norm(const Tensor& weight, const Tensor& u, const Tensor& v,
                     std::int64_t n_power_iterations = 1, std::int64_t dim = 0, double eps = 1e-12);

/// Makes the vectors along `dim` of a matrix unit vectors, in place and off the tape: the step that
/// nGPT takes for every matrix after every step of the optimizer (dim: that of the embedding) and
/// FixNorm for embeddings. Statistics in float32; what is shorter than 1e-12 is divided by that, so
/// that a zero vector stays zero. Source: Loshchilov et
/// al., nGPT (arXiv 2410.01131); Nguyen, Chiang (arXiv 1710.01329).
void unit_norm_(const Tensor& weight, std::int64_t dim = -1);

namespace composite {
// The same in elementary operations; u and v are read only.
Tensor weight_norm(const Tensor& v, const Tensor& g, std::optional<std::int64_t> dim = 0);
Tensor spectral_norm(const Tensor& weight, const Tensor& u, const Tensor& v, std::int64_t dim = 0);
}  // namespace composite

}  // namespace norma
