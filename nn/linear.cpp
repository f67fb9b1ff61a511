#include "norma/nn/linear.h"

#include "norma/core/factory.h"
#include "norma/nn/init.h"

#include <cmath>

namespace norma::nn {

Linear::Linear(std::int64_t in, std::int64_t out, bool with_bias)
    : in_features(in), out_features(out) {
  check<ValueError>(in > 0 && out > 0, "Linear",
                    "in_features and out_features must be positive; got {} and {}", in, out);
  weight = empty({out, in});
  register_parameter("weight", weight, ParameterKind::matrix);
  if (with_bias) {
    bias = empty({out});
    register_parameter("bias", bias, ParameterKind::bias);
  }
  reset_parameters();
}

void Linear::reset_parameters() {
  // kaiming_uniform_ with a = sqrt(5), as PyTorch writes it, is this limit.
  const double limit = 1.0 / std::sqrt(static_cast<double>(in_features));
  init::uniform_(weight, -limit, limit);
  if (bias.defined()) init::uniform_(bias, -limit, limit);
}

Tensor Linear::forward(const Tensor& x, norma::Activation activation) {
  return linear(x, weight, bias, activation);
}

std::string Linear::extra_repr() const {
  return fmt::format("in_features={}, out_features={}, bias={}", in_features, out_features,
                     bias.defined() ? "True" : "False");
}

}  // namespace norma::nn
