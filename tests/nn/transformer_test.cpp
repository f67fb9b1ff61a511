// TransformerBlock and TransformerEncoder: placements, names, configuration.
#include "norma/nn/transformer.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/random.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduction.h"
#include "support/catch.h"
#include "support/compare.h"

using namespace norma;
using norma::test::allclose;

namespace {

const test::Tolerance tight{1e-10, 1e-12};

nn::TransformerConfig small(nn::NormPlacement placement) {
  return {.d_model = 8, .num_heads = 2, .d_ff = 12, .placement = placement, .dropout = 0.0};
}

nn::Norm& norm_of(nn::Module& block, const std::string& name) {
  for (const auto& [child, module] : block.named_children())
    if (child == name) return dynamic_cast<nn::Norm&>(*module);
  throw ValueError("test", "no norm " + name);
}

}  // namespace

TEST_CASE("a block is the formula of its placement") {  // of all: placement_test.cpp
  manual_seed(1);
  const Tensor x = test::random({2, 5, 8}, 1);
  for (const auto placement :
       {nn::NormPlacement::none, nn::NormPlacement::post, nn::NormPlacement::pre}) {
    INFO(nn::to_string(placement));
    nn::TransformerBlock block(small(placement));
    block.to(float64);
    for (const Tensor& parameter : block.parameters())  // gains and biases away from 1 and 0
      parameter.detach().add_(test::random(parameter.shape(), 7), 0.3);
    Tensor expected;
    if (placement == nn::NormPlacement::none) {
      const Tensor h = x + block.self_attn(x);
      expected = h + block.mlp(h);
    } else {
      nn::Norm& norm1 = norm_of(block, "norm1");
      nn::Norm& norm2 = norm_of(block, "norm2");
      if (placement == nn::NormPlacement::pre) {
        const Tensor h = x + block.self_attn(norm1(x));
        expected = h + block.mlp(norm2(h));
      } else {
        const Tensor h = norm1(x + block.self_attn(x));
        expected = norm2(h + block.mlp(h));
      }
    }
    CHECK(allclose(block(x), expected, tight));
  }
}

TEST_CASE("the block registers its parts under the names of PyTorch and HF") {
  nn::TransformerConfig config = small(nn::NormPlacement::pre);
  config.activation = nn::Activation::swiglu;
  config.norm = nn::NormKind::rms_norm;
  config.qk_norm = nn::NormKind::rms_norm;
  config.bias = false;
  config.num_layers = 2;
  nn::TransformerEncoder encoder(config);
  std::vector<std::string> names;
  for (const auto& entry : encoder.named_parameters()) names.push_back(entry.name);
  std::vector<std::string> expected;
  for (const std::string layer : {"layers.0.", "layers.1."})
    for (const char* name :
         {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
          "self_attn.o_proj.weight", "self_attn.q_norm.weight", "self_attn.k_norm.weight",
          "mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight", "norm1.weight",
          "norm2.weight"})
      expected.push_back(layer + name);
  expected.push_back("norm.weight");
  CHECK(names == expected);
}

TEST_CASE("a final norm follows the placements that need one") {
  for (const auto& [placement, name] : nn::EnumNames<nn::NormPlacement>::values) {
    INFO(name);
    nn::TransformerEncoder encoder(small(placement));
    CHECK((encoder.norm != nullptr) == nn::needs_final_norm(placement));
  }
  nn::TransformerEncoder encoder(small(nn::NormPlacement::pre));
  const Tensor y = encoder(test::random({2, 5, 8}, 1).to(float32));
  CHECK(allclose(y.mean({2}), zeros({2, 5}), {0.0, 1e-5}));
}

TEST_CASE("no norm at all: pre with NormKind::none equals placement none") {
  manual_seed(2);
  nn::TransformerConfig config = small(nn::NormPlacement::pre);
  config.norm = nn::NormKind::none;
  nn::TransformerEncoder pre(config), none(small(nn::NormPlacement::none));
  none.load_state_dict(pre.state_dict());
  const Tensor x = test::random({1, 3, 8}, 2).to(float32);
  CHECK(test::bitwise_equal(pre(x).detach(), none(x).detach()));
}

TEST_CASE("dropout acts on sublayer outputs in training only") {
  manual_seed(3);
  nn::TransformerConfig config = small(nn::NormPlacement::none);
  config.dropout = 1.0;
  nn::TransformerBlock block(config);
  const Tensor x = test::random({1, 3, 8}, 3).to(float32);
  CHECK(allclose(block(x), x));
  block.eval();
  CHECK_FALSE(static_cast<bool>(allclose(block(x), x, {1e-3, 1e-3})));
}

TEST_CASE("d_ff defaults to 4 d_model; impossible configurations name their fields") {
  using Catch::Contains;
  nn::TransformerBlock block({.d_model = 8, .num_heads = 2});
  CHECK(block.mlp.config.d_ff == 32);
  const auto make = [](const nn::TransformerConfig& config) { nn::TransformerEncoder{config}; };
  CHECK_THROWS_WITH(make({.d_model = 10, .num_heads = 4}),
                    Contains("got d_model = 10, num_heads = 4"));
  CHECK_THROWS_WITH(make({.d_model = 8, .num_heads = 2, .num_layers = 0}),
                    Contains("num_layers = 0"));
  CHECK_THROWS_WITH(make({.d_model = 8, .num_heads = 2, .dropout = 1.5}),
                    Contains("dropout must be in [0, 1]; got 1.5"));
  CHECK_THROWS_AS(make({.d_model = 8, .num_heads = 2, .d_ff = -1}), ValueError);
  CHECK_THROWS_AS(make({.d_model = 8, .num_heads = 2, .eps = -1.0}), ValueError);
}
