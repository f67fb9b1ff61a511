#include "norma/nn/weight_norm.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/nn/init.h"
#include "norma/ops/linear.h"
#include "norma/ops/norm.h"
#include "norma/ops/reduction.h"
#include "norma/ops/weight_norm.h"

#include <cmath>

namespace norma::nn {

namespace {

/// Weight and bias with the initial values of Linear.
void start_as_linear(const Tensor& weight, const Tensor& bias) {
  const double limit = 1.0 / std::sqrt(static_cast<double>(weight.size(1)));
  init::uniform_(weight, -limit, limit);
  if (bias.defined()) init::uniform_(bias, -limit, limit);
}

void check_features(const char* layer, std::int64_t in, std::int64_t out) {
  check<ValueError>(in > 0 && out > 0, layer,
                    "in_features and out_features must be positive; got {} and {}", in, out);
}

}  // namespace

WeightNormLinear::WeightNormLinear(std::int64_t in, std::int64_t out, bool with_bias) {
  check_features("WeightNormLinear", in, out);
  weight_v = empty({out, in});
  if (with_bias) bias = empty({out});
  start_as_linear(weight_v, bias);
  weight_g = vector_norm(weight_v, {1}, true);
  if (with_bias) register_parameter("bias", bias, ParameterKind::bias);
  register_parameter("weight_g", weight_g, ParameterKind::norm);
  register_parameter("weight_v", weight_v, ParameterKind::matrix);
}

Tensor WeightNormLinear::forward(const Tensor& x) {
  return linear(x, weight_norm(weight_v, weight_g), bias);
}

SpectralNormLinear::SpectralNormLinear(std::int64_t in, std::int64_t out, bool with_bias,
                                       std::int64_t iterations, double epsilon)
    : n_power_iterations(iterations), eps(epsilon) {
  check_features("SpectralNormLinear", in, out);
  check<ValueError>(iterations > 0, "SpectralNormLinear",
                    "n_power_iterations must be positive; got {}", iterations);
  weight_orig = empty({out, in});
  if (with_bias) bias = empty({out});
  start_as_linear(weight_orig, bias);
  weight_u = normalize(randn({out}), 0, eps);
  weight_v = normalize(randn({in}), 0, eps);
  spectral_norm(weight_orig, weight_u, weight_v, 15, 0, eps);
  if (with_bias) register_parameter("bias", bias, ParameterKind::bias);
  register_parameter("weight_orig", weight_orig, ParameterKind::matrix);
  register_buffer("weight_u", weight_u);
  register_buffer("weight_v", weight_v);
}

Tensor SpectralNormLinear::forward(const Tensor& x) {
  const Tensor weight = spectral_norm(weight_orig, weight_u, weight_v,
                                      is_training() ? n_power_iterations : 0, 0, eps);
  return linear(x, weight, bias);
}

FixNormEmbedding::FixNormEmbedding(std::int64_t rows, std::int64_t width,
                                   std::optional<std::int64_t> padding)
    : embedding(rows, width, padding) {
  register_module("embedding", embedding);
  g = full({1}, std::sqrt(static_cast<double>(width)));
  register_parameter("g", g, ParameterKind::norm);
}

Tensor FixNormEmbedding::forward(const Tensor& index) {
  return scale_norm(embedding(index), g, 1e-12);
}

void normalize_matrices_(Module& model) {
  for (const auto& [path, module] : model.named_modules()) {
    const std::string name = path.substr(path.rfind('.') + 1);
    if (auto* linear = dynamic_cast<Linear*>(module))
      unit_norm_(linear->weight, name == "o_proj" || name == "fc2" || name == "down_proj" ? 0 : 1);
    else if (auto* table = dynamic_cast<Embedding*>(module))
      unit_norm_(table->weight, 1);
  }
}

void mark_unit_matrices(Module& model) {
  for (Module* module : model.modules())
    if (dynamic_cast<Linear*>(module) != nullptr || dynamic_cast<Embedding*>(module) != nullptr)
      module->set_parameter_kind("weight", ParameterKind::sphere);
}

}  // namespace norma::nn
