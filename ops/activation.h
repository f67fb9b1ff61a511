// Activations. Each is fused: one kernel forward, one backward, which keeps only its input (relu:
// its output).
#pragma once

#include "norma/ops/elementwise.h"  // sigmoid and tanh are activations, too

#include <string_view>

namespace norma {

/// max(x, 0); the gradient at 0 is 0. As torch.nn.functional.relu.
Tensor relu(const Tensor& x);

/// x Phi(x) with the normal distribution function Phi, exactly (by erf) or by `approximate =
/// "tanh"`: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). Throws ValueError for another
/// `approximate`. As torch.nn.functional.gelu; Hendrycks, Gimpel: Gaussian Error Linear Units
/// (arXiv 1606.08415).
Tensor gelu(const Tensor& x, std::string_view approximate = "none");

/// x sigmoid(x), also called swish. As torch.nn.functional.silu.
Tensor silu(const Tensor& x);

/// log(1 + e^(beta x)) / beta, without overflow for any x: so it needs no `threshold` as PyTorch's
/// does.
Tensor softplus(const Tensor& x, double beta = 1.0);

/// silu(gate) * up, the gate of a Llama feed-forward. Both of one shape and dtype (ShapeError,
/// DTypeError). Shazeer: GLU Variants Improve Transformer (arXiv 2002.05202).
Tensor swiglu(const Tensor& gate, const Tensor& up);

namespace composite {
// The same in elementary operations.
Tensor relu(const Tensor& x);
Tensor gelu(const Tensor& x, std::string_view approximate = "none");
Tensor silu(const Tensor& x);
Tensor softplus(const Tensor& x, double beta = 1.0);
Tensor swiglu(const Tensor& gate, const Tensor& up);
}  // namespace composite

}  // namespace norma
