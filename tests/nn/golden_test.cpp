// Layers and two whole classifiers against PyTorch (tests/golden/make_models.py): outputs, loss,
// the gradient of every parameter, and the loss curve of 50 training steps.
#include "support/golden.h"
#include "support/catch.h"
#include "support/compare.h"

#include "norma/core/autograd.h"
#include "norma/nn/nn.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/loss.h"
#include "norma/ops/reduction.h"
#include "norma/optim/adamw.h"
#include "norma/optim/clip_grad.h"
#include "norma/optim/weight_decay_groups.h"

#include <cmath>

namespace norma::test {
namespace {

/// The golden tensors below `prefix`, by the rest of their names.
nn::StateDict below(const std::string& file, const std::string& prefix, DType dtype) {
  nn::StateDict result;
  for (const auto& [key, tensor] : golden(file))
    if (key.starts_with(prefix)) result.insert(key.substr(prefix.size()), converted(tensor, dtype));
  return result;
}

const Tensor& layer_golden(const std::string& key) { return golden("layers.safetensors").at(key); }

/// The gradient of a parameter by equals_golden, unless it is zero: the bias of keys without
/// rotation or soft cap, for softmax does not see a constant. There both values are rounding.
void check_gradient(const nn::NamedParameter& parameter, const Tensor& expected, DType dtype) {
  INFO(parameter.name);
  const Tensor gradient = parameter.tensor.grad();
  if (amax(expected.abs()).item() < 1e-12)
    CHECK(allclose(gradient, expected, {0.0, dtype == float64 ? 1e-12 : 1e-5}));
  else
    CHECK(equals_golden(gradient, expected, dtype));
}

/// `call` runs `module` on the golden input.
template <class M>
void check_layer(const std::string& name, M& module,
                 const std::function<Tensor(const Tensor&)>& call) {
  for (const DType dtype : {float64, float32}) {
    INFO(name << " " << dtype_name(dtype));
    module.to(dtype);
    module.zero_grad();
    module.load_state_dict(below("layers.safetensors", name + "/state/", dtype));
    const Tensor x = converted(layer_golden(name + "/in0"), dtype);
    if (x.is_floating_point()) x.requires_grad_();
    const Tensor y = call(x);
    CHECK(equals_golden(y.detach(), layer_golden(name + "/out0"), dtype));
    y.backward(converted(layer_golden(name + "/ct0"), dtype));
    if (x.is_floating_point()) CHECK(equals_golden(x.grad(), layer_golden(name + "/grad0"), dtype));
    for (const nn::NamedParameter& parameter : module.named_parameters())
      check_gradient(parameter, layer_golden(name + "/state_grad/" + parameter.name), dtype);
  }
}

template <class M>
void check_layer(const std::string& name, M& module) {
  check_layer(name, module, [&](const Tensor& x) { return module(x); });
}

struct Recipe {
  std::string name;
  nn::ClassifierConfig config;
};

std::vector<Recipe> recipes() {
  nn::ClassifierConfig rms{.vocab_size = 30, .pooling = nn::Pooling::mean};
  rms.encoder = {.d_model = 8,
                 .num_heads = 2,
                 .num_kv_heads = 1,
                 .d_ff = 12,
                 .num_layers = 2,
                 .norm = nn::NormKind::rms_norm,
                 .placement = nn::NormPlacement::pre,
                 .eps = 1e-6,
                 .dropout = 0.0,
                 .positions = nn::Positions::rope};
  nn::ClassifierConfig layer{.vocab_size = 30, .max_length = 12, .pooling = nn::Pooling::mean_max};
  layer.encoder = {.d_model = 8,
                   .num_heads = 2,
                   .d_ff = 12,
                   .num_layers = 2,
                   .activation = nn::Activation::relu,
                   .norm = nn::NormKind::layer_norm,
                   .placement = nn::NormPlacement::post,
                   .dropout = 0.0,
                   .positions = nn::Positions::learned};
  return {{"pre_rms", rms}, {"post_layer", layer}};
}

Tensor loss_of(nn::TransformerClassifier& model, const std::string& name, int batch) {
  const auto& tensors = golden("classifiers.safetensors");
  const std::string index = std::to_string(batch);
  const Tensor logits =
      model(tensors.at(name + "/tokens" + index), tensors.at(name + "/padding" + index));
  return cross_entropy(logits, tensors.at(name + "/labels" + index), {.label_smoothing = 0.05});
}

}  // namespace

TEST_CASE("layers equal PyTorch's", "[golden]") {
  const Tensor padding = layer_golden("padding");
  nn::Linear linear(8, 3);
  check_layer("linear", linear);
  nn::Embedding embedding(6, 8, 0);
  check_layer("embedding", embedding);
  nn::LayerNorm layer_norm(8);
  check_layer("layer_norm", layer_norm);
  nn::RMSNorm rms_norm(8, 1e-6);
  check_layer("rms_norm", rms_norm);
  nn::MultiheadAttention attention({.d_model = 8, .num_heads = 2});
  check_layer("attention", attention, [&](const Tensor& x) { return attention(x, padding); });
  nn::MultiheadAttention causal(
      {.d_model = 8, .num_heads = 4, .num_kv_heads = 2, .causal = true, .rope = true});
  check_layer("attention_causal_gqa_rope", causal);
  nn::MultiheadAttention capped({.d_model = 8,
                                 .num_heads = 2,
                                 .rope = true,
                                 .qk_norm = nn::NormKind::rms_norm,
                                 .softcap = 1.5});
  check_layer("attention_qk_norm_softcap", capped,
              [&](const Tensor& x) { return capped(x, padding); });
  const std::pair<const char*, nn::Activation> activations[] = {{"gelu", nn::Activation::gelu},
                                                                {"relu", nn::Activation::relu},
                                                                {"swiglu", nn::Activation::swiglu}};
  for (const auto& [name, activation] : activations) {
    nn::FeedForward feed_forward({.d_model = 8, .d_ff = 12, .activation = activation});
    check_layer(std::string("feed_forward_") + name, feed_forward);
  }
  const std::tuple<const char*, nn::NormPlacement, nn::NormKind> blocks[] = {
      {"pre_layer_norm", nn::NormPlacement::pre, nn::NormKind::layer_norm},
      {"pre_rms_norm", nn::NormPlacement::pre, nn::NormKind::rms_norm},
      {"post_layer_norm", nn::NormPlacement::post, nn::NormKind::layer_norm},
      {"post_rms_norm", nn::NormPlacement::post, nn::NormKind::rms_norm},
      {"none_layer_norm", nn::NormPlacement::none, nn::NormKind::none}};
  for (const auto& [name, placement, kind] : blocks) {
    const bool rms = kind == nn::NormKind::rms_norm;
    nn::TransformerBlock block({.d_model = 8,
                                .num_heads = 2,
                                .d_ff = 12,
                                .norm = kind,
                                .placement = placement,
                                .eps = rms ? std::optional(1e-6) : std::nullopt,
                                .dropout = 0.0});
    check_layer(std::string("block_") + name, block,
                [&](const Tensor& x) { return block(x, padding); });
  }
}

TEST_CASE("a 2-layer classifier equals PyTorch's: logits, loss, every gradient", "[golden]") {
  const auto& tensors = golden("classifiers.safetensors");
  for (const Recipe& recipe : recipes())
    for (const DType dtype : {float64, float32}) {
      INFO(recipe.name << " " << dtype_name(dtype));
      nn::TransformerClassifier model(recipe.config);
      model.to(dtype);
      model.load_state_dict(below("classifiers.safetensors", recipe.name + "/state/", dtype));
      {
        const NoGradGuard no_grad;
        CHECK(equals_golden(
            model(tensors.at(recipe.name + "/tokens0"), tensors.at(recipe.name + "/padding0")),
            tensors.at(recipe.name + "/logits"), dtype));
      }
      const Tensor loss = loss_of(model, recipe.name, 0);
      CHECK(equals_golden(loss.detach(), tensors.at(recipe.name + "/loss"), dtype));
      loss.backward();
      for (const nn::NamedParameter& parameter : model.named_parameters())
        check_gradient(parameter, tensors.at(recipe.name + "/grad/" + parameter.name), dtype);
    }
}

TEST_CASE("the loss curve of 50 training steps equals PyTorch's", "[golden]") {
  for (const Recipe& recipe : recipes()) {
    INFO(recipe.name);
    nn::TransformerClassifier model(recipe.config);
    model.to(float64);
    model.load_state_dict(below("classifiers.safetensors", recipe.name + "/state/", float64));
    const auto groups = optim::weight_decay_groups(model, 0.1);
    optim::AdamW optimizer(groups, {.lr = 1e-2, .betas = {0.9, 0.98}, .eps = 1e-8});
    std::vector<double> curve;
    for (int step = 0; step < 50; ++step) {
      optimizer.zero_grad();
      const Tensor loss = loss_of(model, recipe.name, step % 5);
      loss.backward();
      optim::clip_grad_norm_(model.parameters(), 0.5);
      optimizer.step();
      curve.push_back(loss.item());
    }
    const std::vector<double> expected =
        golden("classifiers.safetensors").at(recipe.name + "/curve").to_vector<double>();
    REQUIRE(curve.size() == expected.size());
    for (std::size_t i = 0; i < curve.size(); ++i) {
      INFO("step " << i);
      // Rounding grows along the trajectory (Adam divides by small numbers), from 1e-15 to about
      // 1e-9 here.
      CHECK(std::abs(curve[i] - expected[i]) <= 1e-7 * expected[i]);
    }
  }
}

}  // namespace norma::test
