#include "norm_lab/reference_model.h"

#include "norma/core/factory.h"
#include "norma/nn/init.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

namespace norm_lab {

using namespace norma;

ReferenceModel::ReferenceModel(nn::NormPlacement placement, std::int64_t layers)
    : encoder({.d_model = kWidth,
               .num_heads = 4,
               .d_ff = 4 * kWidth,
               .num_layers = layers,
               .activation = nn::Activation::relu,
               .placement = placement,
               .dropout = 0.0}),
      head(kWidth, 2) {
  register_module("encoder", encoder);
  register_module("head", head);
  const double gain = nn::residual_gain(placement, layers);
  const auto is_one_of = [](const std::string& name, auto... endings) {
    return (name.ends_with(endings) || ...);
  };
  for (const nn::NamedModule& one : named_modules()) {
    auto* linear = dynamic_cast<nn::Linear*>(one.module);
    if (linear == nullptr) continue;
    const bool scaled = is_one_of(one.name, "v_proj", "o_proj", "fc1", "fc2");
    nn::init::xavier_uniform_(linear->weight, scaled ? gain : 1.0);
    if (is_one_of(one.name, "q_proj", "k_proj")) nn::init::zeros_(linear->weight);
    nn::init::zeros_(linear->bias);
  }
}

ReferenceBatch::ReferenceBatch()
    : inputs(randn({ReferenceModel::kSamples, ReferenceModel::kTokens, ReferenceModel::kWidth})),
      classes(randint(0, 2, {ReferenceModel::kSamples})) {}

std::string part_of_layer(std::int64_t layer, const std::string& part) {
  return fmt::format("encoder.layers.{}{}{}", layer, part.empty() ? "" : ".", part);
}

}  // namespace norm_lab
