// Whole models on cuda(0): they are moved there and train as on the CPU. In the emulator the CPU's
// kernels stand in for those that are missing.
#include "cuda/device_cases.h"
#include "support/compare.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/nn/transformer.h"
#include "norma/ops/elementwise.h"
#include "norma/optim/adamw.h"

namespace norma::test {
namespace {

struct Trained {
  Tensor y;
  std::map<std::string, Tensor> gradients;
  nn::StateDict state;  ///< after the step: parameters and buffers
};

Trained train_step(const nn::TransformerConfig& config, const Device& device) {
  manual_seed(1);
  nn::TransformerEncoder model(config);
  model.to(device);
  // A large eps keeps the step of a gradient that is only rounding near 0.
  optim::AdamW optimizer(model.parameters(), {.lr = 0.1, .eps = 1.0});
  const Tensor x = random({2, 3, 8}, 2).to(float32).to(device);
  const Tensor padding = tensor({{false, false, true}, {false, false, false}}).to(device);
  Trained result;
  result.y = model(x, padding);
  square(result.y).sum().backward();
  for (const nn::NamedParameter& parameter : model.named_parameters())
    result.gradients[parameter.name] = parameter.tensor.grad();
  optimizer.step();
  result.state = model.state_dict();
  return result;
}

TEST_CASE("a model on cuda(0) equals that on the CPU: forward, backward, a step") {
  if (!has_device()) return;
  using Where = nn::NormPlacement;
  using What = nn::NormKind;
  const std::pair<Where, What> models[] = {{Where::pre, What::layer_norm},
                                           {Where::parallel, What::rms_norm},
                                           {Where::post, What::power_norm},
                                           {Where::deep_norm, What::batch_norm}};
  for (const auto& [placement, norm] : models) {
    INFO(nn::to_string(placement) << " of " << nn::to_string(norm));
    const nn::TransformerConfig config{.d_model = 8,
                                       .num_heads = 2,
                                       .d_ff = 12,
                                       .num_layers = 2,
                                       .norm = norm,
                                       .placement = placement,
                                       .dropout = 0.0,
                                       .positions = nn::Positions::rope};
    const Trained host = train_step(config, cpu), device = train_step(config, cuda(0));
    const Tolerance close{1e-4, 1e-4};
    CHECK(device.y.device() == cuda(0));
    CHECK(allclose(device.y, host.y, close));
    for (const auto& [name, gradient] : host.gradients) {
      INFO(name);
      CHECK(allclose(device.gradients.at(name), gradient, close));
    }
    for (const auto& [name, tensor] : host.state) {
      INFO(name);
      CHECK(device.state.at(name).device() == cuda(0));
      CHECK(allclose(device.state.at(name), tensor, close));
    }
  }
}

}  // namespace
}  // namespace norma::test
