#include "norma/nn/activation.h"

#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"

namespace norma::nn {

Tensor ReLU::forward(const Tensor& x) { return relu(x); }

GELU::GELU(std::string approximation) : approximate(std::move(approximation)) {
  check<ValueError>(approximate == "none" || approximate == "tanh", "GELU",
                    "approximate must be none or tanh; got \"{}\"", approximate);
}
Tensor GELU::forward(const Tensor& x) { return gelu(x, approximate); }
std::string GELU::extra_repr() const { return "approximate='" + approximate + "'"; }

Tensor SiLU::forward(const Tensor& x) { return silu(x); }
Tensor Tanh::forward(const Tensor& x) { return tanh(x); }
Tensor Sigmoid::forward(const Tensor& x) { return sigmoid(x); }

}  // namespace norma::nn
