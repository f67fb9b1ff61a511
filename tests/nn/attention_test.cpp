// MultiheadAttention and FeedForward: what each option means. Values against PyTorch:
// golden_test.cpp.
#include "norma/nn/attention.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/random.h"
#include "norma/nn/feed_forward.h"
#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/index.h"
#include "norma/ops/matmul.h"
#include "norma/ops/poly_norm.h"
#include "norma/ops/reduction.h"
#include "norma/ops/softmax.h"
#include "support/catch.h"
#include "support/compare.h"

#include <cmath>

using namespace norma;
using norma::test::allclose;

namespace {

const test::Tolerance tight{1e-10, 1e-12};

/// x with other values at position `position` of every sequence.
Tensor disturbed(const Tensor& x, std::int64_t position) {
  const Tensor copy = x.clone();
  copy.narrow(1, position, 1).copy_(full({x.size(0), 1, x.size(2)}, 3.0));
  return copy;
}

Tensor input(std::uint64_t seed = 1) { return test::random({2, 5, 8}, seed); }

}  // namespace

TEST_CASE("MultiheadAttention is its formula") {
  manual_seed(1);
  nn::MultiheadAttention attention({.d_model = 8, .num_heads = 2});
  attention.to(float64);
  const Tensor x = input();
  const Tensor q = attention.q_proj(x), k = attention.k_proj(x), v = attention.v_proj(x);
  TensorList heads;
  for (std::int64_t h = 0; h < 2; ++h) {
    const auto head = [&](const Tensor& t) { return t.narrow(2, 4 * h, 4); };
    const Tensor scores = matmul(head(q), head(k).transpose(1, 2)) * 0.5;
    heads.push_back(matmul(softmax(scores, -1), head(v)));
  }
  CHECK(allclose(attention(x), attention.o_proj(cat(heads, 2)), tight));
}

TEST_CASE("a causal query sees no later key; a padded key is seen by nobody") {
  manual_seed(2);
  nn::MultiheadAttention causal({.d_model = 8, .num_heads = 2, .causal = true, .rope = true});
  causal.to(float64);
  const Tensor x = input();
  const Tensor changed = causal(disturbed(x, 3));
  CHECK(allclose(changed.narrow(1, 0, 3), causal(x).narrow(1, 0, 3), tight));
  CHECK_FALSE(static_cast<bool>(
      allclose(changed.narrow(1, 3, 2), causal(x).narrow(1, 3, 2), {1e-3, 1e-3})));

  nn::MultiheadAttention attention({.d_model = 8, .num_heads = 2});
  attention.to(float64);
  const Tensor mask =
      tensor({{false, false, false, true, false}, {false, false, false, true, true}});
  const Tensor y = attention(x, mask), z = attention(disturbed(x, 3), mask);
  CHECK(allclose(z.narrow(1, 0, 3), y.narrow(1, 0, 3), tight));
}

TEST_CASE("grouped key-value heads equal full heads with repeated weights") {
  manual_seed(3);
  nn::MultiheadAttention grouped({.d_model = 8, .num_heads = 4, .num_kv_heads = 2});
  nn::MultiheadAttention full({.d_model = 8, .num_heads = 4});
  grouped.to(float64);
  full.to(float64);
  CHECK(grouped.k_proj.weight.shape() == Shape{4, 8});
  const auto repeated = [](const Tensor& t) {  // rows of head g serve heads 2g and 2g + 1
    const Tensor first = t.detach().narrow(0, 0, 2), second = t.detach().narrow(0, 2, 2);
    return cat({first, first, second, second}, 0);
  };
  nn::StateDict state;
  for (const auto& [name, tensor] : grouped.state_dict())
    state.insert(name, name[0] == 'k' || name[0] == 'v' ? repeated(tensor) : tensor);
  full.load_state_dict(state);
  CHECK(allclose(grouped(input()), full(input()), tight));
}

TEST_CASE("rotary positions make order matter, and only relative position") {
  manual_seed(4);
  const Tensor x = test::random({1, 4, 8}, 9);
  const Tensor reversed =
      cat({x.narrow(1, 3, 1), x.narrow(1, 2, 1), x.narrow(1, 1, 1), x.narrow(1, 0, 1)}, 1);
  nn::MultiheadAttention plain({.d_model = 8, .num_heads = 2});
  nn::MultiheadAttention rotary({.d_model = 8, .num_heads = 2, .rope = true});
  plain.to(float64);
  rotary.to(float64);
  CHECK(allclose(plain(reversed).select(1, 3), plain(x).select(1, 0), tight));
  CHECK_FALSE(static_cast<bool>(
      allclose(rotary(reversed).select(1, 3), rotary(x).select(1, 0), {1e-4, 1e-4})));
  // Shifted by three padded positions in front, the same states come out.
  const Tensor shifted = cat({test::random({1, 3, 8}, 10), x}, 1);
  const Tensor mask = tensor({{true, true, true, false, false, false, false}});
  CHECK(allclose(rotary(shifted, mask).narrow(1, 3, 4), rotary(x), {1e-9, 1e-10}));
}

TEST_CASE("QK-norm makes attention blind to the scale of its weights") {
  manual_seed(5);
  nn::MultiheadAttention attention({.d_model = 8,
                                    .num_heads = 2,
                                    .qk_norm = nn::NormKind::rms_norm,
                                    .qk_norm_eps = 0.0,
                                    .bias = false});
  attention.to(float64);
  CHECK(attention.q_norm->parameters()[0].shape() == Shape{4});
  const Tensor before = attention(input());
  {
    NoGradGuard no_grad;
    attention.q_proj.weight.mul_(100.0);
  }
  CHECK(allclose(attention(input()), before, {1e-8, 1e-10}));
}

TEST_CASE("dropout of attention acts in training only") {
  nn::MultiheadAttention attention({.d_model = 8, .num_heads = 2, .dropout = 0.5});
  attention.to(float64);
  CHECK_FALSE(static_cast<bool>(allclose(attention(input()), attention(input()))));
  attention.eval();
  CHECK(test::bitwise_equal(attention(input()).detach(), attention(input()).detach()));
}

TEST_CASE("impossible attention shapes name the fields") {
  using Catch::Contains;
  const auto make = [](const nn::AttentionConfig& config) { nn::MultiheadAttention{config}; };
  CHECK_THROWS_WITH(make({.d_model = 10, .num_heads = 3}),
                    Contains("num_heads must divide d_model; got d_model = 10, num_heads = 3"));
  CHECK_THROWS_WITH(make({.d_model = 12, .num_heads = 4, .num_kv_heads = 3}),
                    Contains("num_kv_heads must divide num_heads"));
  CHECK_THROWS_WITH(make({.d_model = 9, .num_heads = 3, .rope = true}),
                    Contains("rope needs an even head_dim"));
  CHECK_THROWS_AS(make({.num_heads = 3}), ValueError);
  CHECK_THROWS_AS(make({.d_model = 8, .num_heads = 2, .softcap = -1.0}), ValueError);
  CHECK_THROWS_AS(make({.d_model = 8, .num_heads = 2, .dropout = 1.5}), ValueError);
  nn::MultiheadAttention attention({.d_model = 8, .num_heads = 2});
  CHECK_THROWS_AS(attention(ones({2, 5, 6})), ShapeError);
  CHECK_THROWS_AS(attention(ones({2, 5, 8}), zeros({2, 4}, {.dtype = bool_})), ShapeError);
}

TEST_CASE("FeedForward is its formula for every activation, with and without hooks") {
  manual_seed(6);
  const Tensor x = input();
  for (const auto& [activation, name] : nn::EnumNames<nn::Activation>::values) {
    INFO(name);
    nn::FeedForward ffn({.d_model = 8, .d_ff = 12, .activation = activation});
    ffn.to(float64);
    const auto child = [&](const char* wanted) -> nn::Linear& {
      for (const auto& [child_name, module] : ffn.named_children())
        if (child_name == wanted) return dynamic_cast<nn::Linear&>(*module);
      throw ValueError("test", wanted);
    };
    Tensor expected;
    if (activation == nn::Activation::swiglu) {
      expected = child("down_proj")(silu(child("gate_proj")(x)) * child("up_proj")(x));
    } else {
      const Tensor h = child("fc1")(x);
      const Tensor a = activation == nn::Activation::relu        ? relu(h)
                       : activation == nn::Activation::gelu      ? gelu(h)
                       : activation == nn::Activation::gelu_tanh ? gelu(h, "tanh")
                       : activation == nn::Activation::poly_norm
                           ? poly_norm(h, full({3}, 1.0 / 3.0).to(float64))
                           : silu(h);
      expected = child("fc2")(a);
    }
    CHECK(allclose(ffn(x), expected, tight));
    ffn.children()[0]->register_forward_hook([&](nn::Module&, const Tensor&, const Tensor& h) {
      // Hooks of fc1 see it before the activation.
      if (activation == nn::Activation::relu) CHECK(amin(h.flatten(), {0}).item() < 0.0);
    });
    CHECK(allclose(ffn(x), expected, tight));
  }
  CHECK_THROWS_AS(nn::FeedForward({.d_model = 8}), ValueError);
}
