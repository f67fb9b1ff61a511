// The decoder of an encoder-decoder: cross-attention, and constants that depend on both depths.
#include "support/catch.h"
#include "support/compare.h"

#include "norma/core/factory.h"
#include "norma/core/gradcheck.h"
#include "norma/core/random.h"
#include "norma/nn/transformer.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/view.h"

#include <cmath>

namespace norma::nn {
namespace {

using test::allclose;
using test::random;

TransformerConfig decoder_config(NormPlacement placement) {
  return {.d_model = 8,
          .num_heads = 2,
          .d_ff = 12,
          .num_layers = 2,
          .placement = placement,
          .dropout = 0.0,
          .positions = Positions::rope,
          .role = StackRole::decoder,
          .other_layers = 3,
          .causal = true};
}

TEST_CASE("a decoder block is self-attention, cross-attention, feed-forward") {
  const Tensor x = random({2, 3, 8}, 1), memory = random({2, 4, 8}, 2);
  const Tensor padding = tensor({{false, false, true}, {false, false, false}});
  const Tensor no_memory = tensor({{false, false, true, true}, {false, false, false, true}});
  TransformerBlock block(decoder_config(NormPlacement::pre));
  block.to(float64);
  for (const Tensor& parameter : block.parameters())
    parameter.detach().add_(random(parameter.shape(), 7), 0.3);
  const auto norm = [&](const std::string& name, const Tensor& t) {
    for (const auto& [child, module] : block.named_children())
      if (child == name) return dynamic_cast<Norm&>(*module)(t);
    throw ValueError("test", "no " + name);
  };
  Tensor h = x + block.self_attn(norm("norm1", x), padding);
  h = h + (*block.multihead_attn)(norm("norm2", h), no_memory, nullptr, memory);
  CHECK(allclose(block(x, padding, nullptr, memory, no_memory), h + block.mlp(norm("norm3", h)),
                 {1e-10, 1e-12}));
  CHECK(block.self_attn.config.causal);
  CHECK_FALSE(block.multihead_attn->config.causal);
  CHECK_FALSE(block.multihead_attn->config.rope);
  CHECK_THROWS_AS(block(x), ValueError);
}

TEST_CASE("a decoder in each placement: gradients by x, memory and parameters") {
  const Tensor x = random({1, 2, 8}, 3).requires_grad_();
  const Tensor memory = random({1, 3, 8}, 4).requires_grad_();
  const Tensor no_memory = tensor({{false, false, true}});
  for (const auto& [placement, name] : EnumNames<NormPlacement>::values) {
    INFO(name);
    TransformerDecoder decoder(decoder_config(placement));
    decoder.to(float64);
    const auto run = [&](const TensorList& in) {
      return decoder(in[0], in[1], Tensor(), no_memory);
    };
    const auto report = gradcheck(run, {x, memory}, {.fast_mode = true});
    INFO(report.message);
    CHECK(report.ok);
    square(run({x, memory})).sum().backward();
    for (const NamedParameter& parameter : decoder.named_parameters()) {
      INFO(parameter.name);
      CHECK(parameter.tensor.grad().defined());
    }
    CHECK(allclose(memory.grad().narrow(1, 2, 1), zeros({1, 1, 8})));  // padding
    x.set_grad(Tensor());
    memory.set_grad(Tensor());
  }
}

TEST_CASE("initial values of an encoder-decoder: cross-attention with DeepNorm, not with SubLN") {
  for (const NormPlacement which : {NormPlacement::deep_norm, NormPlacement::sub_ln}) {
    INFO(to_string(which));
    manual_seed(3);
    const TransformerBlock plain(decoder_config(NormPlacement::pre));
    manual_seed(3);
    const TransformerBlock scaled(decoder_config(which));
    const bool deep = which == NormPlacement::deep_norm;
    // Two layers here, three in the encoder.
    const double gain = deep ? std::pow(12.0 * 2.0, -0.25) : std::sqrt(std::log(3.0 * 2.0));
    const auto expected = plain.state_dict();
    for (const auto& [name, tensor] : scaled.state_dict()) {
      INFO(name);
      const auto has = [&, &text = name](const char* part) {
        return text.find(part) != std::string::npos;
      };
      if (!has("proj") && !has("fc")) continue;
      const bool kept = has("q_proj") || has("k_proj") || (!deep && has("multihead_attn"));
      CHECK(allclose(tensor, expected.at(name) * (kept ? 1.0 : gain)));
    }
    CHECK(scaled.multihead_attn->inner_attn_ln == nullptr);
    CHECK((scaled.self_attn.inner_attn_ln != nullptr) == !deep);
  }
  CHECK(residual_gain(NormPlacement::deep_norm, 3, StackRole::encoder, 2) ==
        Approx(0.87 * std::pow(81.0 * 2.0, -0.0625)));
  TransformerConfig config = decoder_config(NormPlacement::deep_norm);
  config.other_layers = 0;
  CHECK_THROWS_AS(TransformerDecoder(config), ValueError);
}

TEST_CASE("a decoder stack has the names of an encoder stack, and its final norm") {
  TransformerDecoder decoder(decoder_config(NormPlacement::pre));
  const StateDict state = decoder.state_dict();
  for (const char* name :
       {"layers.1.self_attn.q_proj.weight", "layers.1.multihead_attn.o_proj.weight",
        "layers.1.norm3.weight", "norm.weight"})
    CHECK(state.contains(name));
  const Tensor x = random({2, 3, 8}, 5).to(float32), memory = random({2, 4, 8}, 6).to(float32);
  Tensor h = x;
  for (TransformerBlock& block : decoder.stack.layers) h = block(h, Tensor(), nullptr, memory);
  CHECK(allclose(decoder(x, memory), (*decoder.stack.norm)(h)));
}

}  // namespace
}  // namespace norma::nn
