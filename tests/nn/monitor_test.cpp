// Monitor: its figures against the definition, and that it changes nothing.
#include "norma/nn/monitor.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/nn/attention.h"
#include "norma/nn/sequential.h"
#include "norma/nn/transformer.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"
#include "norma/ops/reduction.h"
#include "norma/ops/softmax.h"
#include "norma/optim/sgd.h"
#include "support/catch.h"
#include "support/compare.h"

#include <cmath>

using namespace norma;

namespace {

struct Shift : nn::Layer<Shift> {
  Tensor forward(const Tensor& x) { return x * 2.0 + 1.0; }
};

}  // namespace

TEST_CASE("a monitor knows activations, gradients and updates") {
  nn::Sequential net;
  net.emplace<Shift>();
  net.emplace<nn::Linear>(2, 1, false);
  auto& linear = dynamic_cast<nn::Linear&>(net[1]);
  linear.weight.detach().copy_(tensor({{3.0, -4.0}}));

  nn::Monitor monitor(net, [](const nn::NamedModule& one) { return !one.name.empty(); });
  net(tensor({{0.0, 1.0}})).sum().backward();  // Shift gives 1, 3
  REQUIRE(monitor.activations().size() == 2);
  const nn::ActivationStats& shift = monitor.activations()[0];
  CHECK(shift.name == "0");
  CHECK(shift.mean == Approx(2.0));
  CHECK(shift.std == Approx(1.0));
  CHECK(shift.rms == Approx(std::sqrt(5.0)));
  CHECK(shift.max == Approx(3.0));
  CHECK(shift.input_rms == Approx(std::sqrt(0.5)));
  CHECK(monitor.activations()[1].gradient_norm == Approx(1.0));

  optim::SGD optimizer(net.parameters(), {.lr = 0.5});
  monitor.before_step();
  optimizer.step();
  const nn::ParameterStats weight = monitor.parameters().at(0);
  CHECK(weight.name == "1.weight");
  CHECK(weight.gradient_norm == Approx(std::sqrt(10.0)));
  CHECK(weight.update_ratio == Approx(0.5 * std::sqrt(10.0) / 5.0));
}

TEST_CASE("a monitor sees what softmax sees, and leaves the model as it is") {
  const auto form = GENERATE(nn::QKNorm::none, nn::QKNorm::henry);
  manual_seed(1);
  nn::TransformerEncoder encoder({.d_model = 8,
                                  .num_heads = 4,
                                  .num_kv_heads = 2,
                                  .num_layers = 2,
                                  .dropout = 0.0,
                                  .positions = nn::Positions::rope,
                                  .qk_form = form,
                                  .softcap = 3.0,
                                  .causal = true});
  const Tensor x = randn({2, 5, 8}, {.requires_grad = true});
  const auto run = [&] {
    const Tensor y = encoder(x);
    return TensorList{y, grad({y.square().sum()}, {x})[0]};
  };
  const TensorList plain = run();
  {
    nn::Monitor monitor(encoder);
    const TensorList watched = run();
    CHECK(test::allclose(watched[0], plain[0]));
    CHECK(test::allclose(watched[1], plain[1]));
    REQUIRE(monitor.attention().size() == 2);
    CHECK(monitor.attention()[0].name == "layers.0.self_attn");
    CHECK(monitor.attention()[0].max_logit <= 3.0);
    CHECK(monitor.attention()[0].entropy > 0.0);
    CHECK(monitor.attention()[0].entropy < std::log(120.0) / 5.0);  // causal: mean of log 1 … log 5
  }
  CHECK_FALSE(encoder.has_hooks());
}

TEST_CASE("scores() are those of forward()") {
  manual_seed(1);
  nn::MultiheadAttention attention({.d_model = 8,
                                    .num_heads = 4,
                                    .num_kv_heads = 2,
                                    .causal = true,
                                    .rope = true,
                                    .qk_form = nn::QKNorm::l2_learned,
                                    .softcap = 2.0});
  const Tensor x = randn({2, 5, 8});
  const Tensor values = attention.v_proj(x).view({2, 5, 2, 1, 2}).expand({2, 5, 2, 2, 2});
  const Tensor heads =
      softmax(attention.scores(x), -1).matmul(values.reshape({2, 5, 4, 2}).transpose(1, 2));
  const Tensor expected = attention.o_proj(heads.transpose(1, 2).reshape({2, 5, 8}));
  CHECK(test::allclose(attention(x), expected, test::Tolerance{1e-5, 1e-6}));
}
