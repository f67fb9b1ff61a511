// Hooks of modules: order, replacement, gradients, removal.
#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/nn/linear.h"
#include "norma/nn/sequential.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduction.h"
#include "support/catch.h"
#include "support/compare.h"

using namespace norma;
using norma::test::allclose;

namespace {

struct Triple : nn::Layer<Triple> {
  Tensor forward(const Tensor& x) { return x * 3.0; }
};
struct Pair : nn::Layer<Pair> {
  TensorList forward(const Tensor& x, double factor = 2.0) { return {x, x * factor}; }
};
using Log = std::vector<std::string>;

}  // namespace

TEST_CASE("hooks run in the documented order") {
  Triple layer;
  Log log;
  layer.register_full_backward_hook(
      [&](nn::Module&, const Tensor&, const Tensor&) { log.push_back("backward 1"); });
  layer.register_forward_hook(
      [&](nn::Module&, const Tensor&, const Tensor&) { log.push_back("forward 1"); });
  layer.register_forward_pre_hook([&](nn::Module&, const Tensor&) { log.push_back("pre 1"); });
  layer.register_forward_pre_hook([&](nn::Module&, const Tensor&) { log.push_back("pre 2"); });
  layer.register_forward_hook(
      [&](nn::Module&, const Tensor&, const Tensor&) { log.push_back("forward 2"); });
  layer.register_full_backward_hook(
      [&](nn::Module&, const Tensor&, const Tensor&) { log.push_back("backward 2"); });
  const Tensor x = ones({2}, {.requires_grad = true});
  const Tensor y = layer(x);
  CHECK(log == Log{"pre 1", "pre 2", "forward 1", "forward 2"});
  log.clear();
  y.sum().backward();
  CHECK(log == Log{"backward 1", "backward 2"});
  CHECK(allclose(x.grad(), {3.0, 3.0}));
}

TEST_CASE("forward hooks see and may replace input and output") {
  Triple layer;
  const Tensor x = tensor({1.0, 2.0});
  const auto pre = layer.register_forward_pre_hook([&](nn::Module& module, const Tensor& input) {
    CHECK(&module == &layer);
    CHECK(input.is_same(x));
    return input + 1.0;
  });
  auto post =
      layer.register_forward_hook([](nn::Module&, const Tensor& input, const Tensor& output) {
        CHECK(allclose(input, {2.0, 3.0}));
        CHECK(allclose(output, {6.0, 9.0}));
        return output * 10.0;
      });
  CHECK(allclose(layer(x), {60.0, 90.0}));
  post.remove();
  CHECK(allclose(layer(x), {6.0, 9.0}));
}

TEST_CASE("full-backward hooks see the gradients of this module alone and may replace grad_input") {
  Triple layer;
  const Tensor x = tensor({1.0, 2.0}, {.requires_grad = true});
  Tensor seen_input, seen_output;
  auto handle = layer.register_full_backward_hook(
      [&](nn::Module&, const Tensor& grad_input, const Tensor& grad_output) {
        seen_input = grad_input;
        seen_output = grad_output;
        return grad_input * 100.0;
      });
  // x is used outside of the layer, too: its other gradient (1) must not arrive at the hook.
  (layer(x) * 2.0 + x).sum().backward();
  CHECK(allclose(seen_output, {2.0, 2.0}));
  CHECK(allclose(seen_input, {6.0, 6.0}));
  CHECK(allclose(x.grad(), {601.0, 601.0}));

  handle.remove();
  handle.remove();
  x.set_grad({});
  layer(x).sum().backward();
  CHECK(allclose(x.grad(), {3.0, 3.0}));
}

TEST_CASE("a full-backward hook runs without grad_input where the input needs no gradient") {
  nn::Linear layer(2, 1);
  int calls = 0;
  layer.register_full_backward_hook(
      [&](nn::Module&, const Tensor& grad_input, const Tensor& grad_output) {
        ++calls;
        CHECK_FALSE(grad_input.defined());
        CHECK(allclose(grad_output, ones({3, 1})));
      });
  layer(ones({3, 2})).sum().backward();
  CHECK(calls == 1);
  CHECK(allclose(layer.weight.grad(), {3.0, 3.0}));
  {
    NoGradGuard no_grad;
    layer(ones({3, 2}));
  }
  CHECK(calls == 1);
}

TEST_CASE("each call of a shared module has a backward of its own") {
  Triple layer;
  std::vector<double> outputs;
  layer.register_full_backward_hook([&](nn::Module&, const Tensor&, const Tensor& grad_output) {
    outputs.push_back(grad_output.item());
  });
  const Tensor x = ones({1}, {.requires_grad = true});
  layer(layer(x)).backward();
  CHECK(outputs == std::vector<double>{1.0, 3.0});
  CHECK(x.grad().item() == 9.0);
}

TEST_CASE("hooks survive neither their handle's remove nor their module") {
  const Tensor x = ones({1}, {.requires_grad = true});
  Tensor y;
  RemovableHandle handle;
  int calls = 0;
  {
    Triple layer;
    handle = layer.register_full_backward_hook(
        [&](nn::Module&, const Tensor&, const Tensor&) { ++calls; });
    y = layer(x);
  }
  y.backward();
  CHECK(calls == 0);
  CHECK(x.grad().item() == 3.0);
  handle.remove();
}

TEST_CASE("a hook may remove itself while hooks run") {
  Triple layer;
  int first = 0, second = 0;
  RemovableHandle handle;
  handle = layer.register_forward_hook([&](nn::Module&, const Tensor&, const Tensor&) {
    ++first;
    handle.remove();
  });
  layer.register_forward_hook([&](nn::Module&, const Tensor&, const Tensor&) { ++second; });
  layer(ones({1}));
  layer(ones({1}));
  CHECK(first == 1);
  CHECK(second == 2);
}

TEST_CASE("results that are not one tensor pass hooks untouched, default arguments work") {
  Pair layer;
  bool undefined = false;
  layer.register_forward_hook([&](nn::Module&, const Tensor& input, const Tensor& output) {
    undefined = input.defined() && !output.defined();
  });
  CHECK(allclose(layer(ones({1}))[1], {2.0}));
  CHECK(allclose(layer(ones({1}), 5.0)[1], {5.0}));
  CHECK(undefined);
}

TEST_CASE("hooks of children run inside of containers") {
  nn::Sequential net(nn::make<Triple>(), nn::make<Triple>());
  Log log;
  net.register_forward_hook(
      [&](nn::Module&, const Tensor&, const Tensor&) { log.push_back("net"); });
  net[1].register_forward_hook([&](nn::Module&, const Tensor&, const Tensor& output) {
    log.push_back("child");
    return output + 1.0;
  });
  CHECK(allclose(net(ones({1})), {10.0}));
  CHECK(log == Log{"child", "net"});
}
