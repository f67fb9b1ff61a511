// What backward and grad compute: accumulation, hooks, modes, errors, higher derivatives.
#include "support/catch.h"
#include "support/compare.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/ops/elementwise.h"

#include <cmath>
#include <limits>

namespace norma::test {
namespace {

const TensorOptions trainable{.dtype = float64, .requires_grad = true};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a tensor used twice gets both gradients") {
  const Tensor x = tensor({1.0, 2.0, 3.0}, trainable);
  (x + x).sum().backward();
  CHECK(allclose(x.grad(), {2.0, 2.0, 2.0}));
}

TEST_CASE("leaves do not share gradient buffers") {
  const Tensor a = full({3}, 1.0, trainable);
  const Tensor b = full({3}, 1.0, trainable);
  (a + b).sum().backward();
  a.grad().mul_(5.0);
  CHECK(allclose(a.grad(), {5.0, 5.0, 5.0}));
  CHECK(allclose(b.grad(), {1.0, 1.0, 1.0}));
}

TEST_CASE("the caller's gradient buffer is not taken") {
  const Tensor x = full({2}, 1.0, trainable);
  const Tensor seed = full({2}, 3.0, {.dtype = float64});
  (x + 0.0).backward(seed);
  x.grad().mul_(2.0);
  CHECK(allclose(seed, {3.0, 3.0}));
}

TEST_CASE("broadcast gradients are summed by the engine") {
  const Tensor x = random({2, 3}, 1).requires_grad_();
  const Tensor bias = random({3}, 2).requires_grad_();
  const Tensor scale = random({2, 1}, 3).requires_grad_();
  (x * scale + bias).sum().backward();
  CHECK(bias.grad().shape() == Shape{3});
  CHECK(allclose(bias.grad(), {2.0, 2.0, 2.0}));
  CHECK(scale.grad().shape() == Shape{2, 1});
  CHECK(allclose(scale.grad(), x.detach().sum({1}, true)));
}

TEST_CASE(
    "an in-place change of a saved value is an error that names operation, tensor and remedy") {
  const Tensor x = full({3}, 2.0, trainable);
  const Tensor y = x * 1.0;
  const Tensor z = (y * y).sum();
  y.add_(ones({3}, {.dtype = float64}));
  const std::string text = message_of([&] { z.backward(); });
  CHECK(contains(text, "[mul]"));
  CHECK(contains(text, "saved tensor"));
  CHECK(contains(text, "clone()"));
}

TEST_CASE("a saved leaf that got other data is noticed") {
  const Tensor w = full({3}, 2.0, trainable);
  const Tensor z = (w * w).sum();
  w.impl()->storage = full({3}, 5.0, {.dtype = float64}).storage();  // as Module::to does
  CHECK(contains(message_of([&] { z.backward(); }), "other data"));
}

TEST_CASE("a view shares the version of its base") {
  const Tensor x = full({4}, 2.0, {.dtype = float64});
  const Tensor w = full({4}, 1.0, trainable);
  const Tensor z = (w * x).sum();
  x.narrow(0, 0, 1).fill_(7.0);
  CHECK(contains(message_of([&] { z.backward(); }), "version"));
}

TEST_CASE("in-place operations take part in the tape") {
  const Tensor x = full({3}, 2.0, trainable);
  const Tensor y = x * 3.0;
  y.mul_(x.detach());
  y.add_(x);
  y.sum().backward();
  CHECK(allclose(x.grad(), {7.0, 7.0, 7.0}));
}

TEST_CASE("in-place on a leaf that requires grad needs no_grad") {
  const Tensor x = full({3}, 2.0, trainable);
  CHECK(contains(message_of([&] { x.mul_(2.0); }), "NoGradGuard"));
  {
    const NoGradGuard no_grad;
    x.mul_(2.0);
  }
  CHECK(allclose(x.detach(), {4.0, 4.0, 4.0}));
}

TEST_CASE("in-place on a view that history would miss is refused") {
  const Tensor x = full({4}, 2.0, trainable);
  const Tensor y = x * 2.0;
  CHECK(contains(message_of([&] { y.narrow(0, 0, 2).mul_(3.0); }), "view"));
  const Tensor v = y.narrow(0, 0, 2);
  CHECK(contains(message_of([&] { y.mul_(3.0); }), "views"));
}

TEST_CASE("in-place past views that the history would miss is refused") {
  const Tensor w = full({3}, 1.0, trainable);
  const Tensor a = zeros({1, 3}, {.dtype = float64});
  {
    const Tensor view = a.reshape({3});
    CHECK(contains(message_of([&] { a.add_(w); }), "a tensor with views"));
    const NoGradGuard no_grad;
    a.add_(w);  // nothing is recorded, and so nothing missed
  }
  a.add_(w);  // the view is gone
  a.sum().backward();
  CHECK(allclose(w.grad(), {1.0, 1.0, 1.0}));

  const Tensor y = w * 2.0;
  Tensor unrecorded;
  {
    const NoGradGuard no_grad;
    unrecorded = y.narrow(0, 0, 2).narrow(0, 0, 1);
  }
  CHECK(contains(message_of([&] { unrecorded.mul_(3.0); }), "a view must not change"));
  y.detach().mul_(3.0);  // detach() says that one knows
}

TEST_CASE("retain_grad follows a tensor through in-place changes") {
  const Tensor x = full({2}, 1.0, trainable);
  const Tensor y = x * 2.0;
  y.retain_grad();
  y.mul_(5.0);
  y.sum().backward();
  CHECK(allclose(y.grad(), {1.0, 1.0}));
  CHECK(allclose(x.grad(), {10.0, 10.0}));
}

TEST_CASE("errors of backward carry a remedy") {
  const Tensor x = full({3}, 2.0, trainable);
  CHECK(contains(message_of([&] { (x * x).backward(); }), "sum()"));
  CHECK(contains(message_of([&] { full({}, 1.0).backward(); }), "requires_grad_"));
  CHECK(contains(message_of([&] { (x * x).backward(ones({2}, {.dtype = float64})); }), "shape"));
  CHECK(contains(message_of([&] { (x * x).backward(ones({3})); }), "dtype"));
  const Tensor unused = full({3}, 1.0, trainable);
  CHECK(contains(message_of([&] { grad({(x * x).sum()}, {unused}); }), "allow_unused"));
  CHECK_FALSE(grad({(x * x).sum()}, {unused}, {.allow_unused = true})[0].defined());
  CHECK(contains(message_of([&] { zeros({2}, {.dtype = int64}).requires_grad_(); }), "float"));
}

TEST_CASE("no_grad records nothing and ends with its scope, also by an exception") {
  const Tensor x = full({3}, 2.0, trainable);
  try {
    const NoGradGuard no_grad;
    CHECK_FALSE((x * x).requires_grad());
    {
      const EnableGradGuard recording;
      CHECK((x * x).requires_grad());
    }
    throw 1;
  } catch (int) {
  }
  CHECK((x * x).requires_grad());
  CHECK_FALSE(x.detach().requires_grad());
}

TEST_CASE("tensor hooks replace gradients in order, and can be removed") {
  const Tensor x = full({2}, 1.0, trainable);
  const Tensor y = x * 3.0;
  std::vector<int> order;
  std::vector<double> seen_by_second;
  RemovableHandle first = y.register_hook([&](const Tensor& g) {
    order.push_back(1);
    return g * 2.0;
  });
  y.register_hook([&](const Tensor& g) {
    order.push_back(2);
    seen_by_second = g.to_vector<double>();
    return Tensor();
  });
  x.register_hook([&](const Tensor& g) {
    order.push_back(3);
    return g + 1.0;
  });
  y.retain_grad();
  y.sum().backward({}, {.retain_graph = true});
  CHECK(order == std::vector<int>{1, 2, 3});
  CHECK(seen_by_second == std::vector<double>{2.0, 2.0});
  CHECK(allclose(y.grad(), {2.0, 2.0}));
  CHECK(allclose(x.grad(), {7.0, 7.0}));
  first.remove();
  first.remove();  // any number of times
  x.set_grad({});
  order.clear();
  y.sum().backward();
  CHECK(order == std::vector<int>{2, 3});
  CHECK(allclose(x.grad(), {4.0, 4.0}));
}

TEST_CASE("a hook registered on a leaf after the forward still runs") {
  const Tensor x = full({2}, 1.0, trainable);
  const Tensor y = (x * 2.0).sum();
  int calls = 0;
  RemovableHandle handle = x.register_hook([&](const Tensor& g) {
    ++calls;
    return g * 10.0;
  });
  y.backward({}, {.retain_graph = true});
  CHECK(calls == 1);
  CHECK(allclose(x.grad(), {20.0, 20.0}));
  handle.remove();
  y.backward();
  CHECK(calls == 1);
}

TEST_CASE("anomaly mode names the operation that made the first NaN or Inf") {
  const Tensor x = tensor({1.0, 0.0}, trainable);
  {
    const DetectAnomalyGuard guard;
    CHECK(contains(message_of([&] { log(x); }), "[log]"));
    CHECK_FALSE((x * 2.0).numel() == 0);
  }
  CHECK(log(x).requires_grad());  // off again
  {
    // Finite forward, infinite derivative: sqrt at 0.
    const Tensor y = sqrt(x).sum();
    const DetectAnomalyGuard guard;
    const std::string text = message_of([&] { y.backward(); });
    CHECK(contains(text, "[sqrt]"));
    CHECK(contains(text, "backward"));
  }
  {
    const DetectAnomalyGuard guard;
    const Tensor bad = full({2}, std::numeric_limits<double>::quiet_NaN(), {.dtype = float64});
    CHECK(contains(message_of([&] { x + bad; }), "input 1 of its forward already holds"));
    const Tensor y = x + 2.0;
    CHECK(contains(message_of([&] { y.backward(bad); }), "input 0 of its backward already holds"));
  }
}

TEST_CASE("anomaly mode passes on an infinity that was given, and names who makes NaN of it") {
  const DetectAnomalyGuard guard;
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor x = tensor({1.0, 2.0}, trainable);
  const Tensor masked = masked_fill(x, tensor({false, true}), -infinity);
  exp(masked).sum().backward();
  CHECK(allclose(x.grad(), {std::exp(1.0), 0.0}));
  CHECK(contains(message_of([&] { masked - masked; }),
                 "[sub] anomaly mode: every value must be "
                 "finite; its forward made a NaN"));
  const Tensor zero = tensor({0.0}, trainable);
  pow(zero, tensor({0.0}, {.dtype = float64})).backward();
  CHECK(allclose(zero.grad(), {0.0}));
}

TEST_CASE("anomaly mode sees sums of gradients overflow") {
  const Tensor w = tensor({1e-300}, trainable);  // finite sums forward, infinite ones backward
  const Tensor y = w * 1.0, huge = full({1}, 1.5e308, {.dtype = float64});
  const DetectAnomalyGuard guard;
  const std::string text = message_of([&] { (y * huge + y * huge).sum().backward(); });
  CAPTURE(text);
  CHECK(contains(text, "[mul]"));
  CHECK(contains(text, "its sum of arriving gradients made an infinity"));
  (w * huge).sum().backward();
  CHECK(contains(message_of([&] { (w * huge).sum().backward(); }), "the .grad() of a leaf"));
}

TEST_CASE("grad with create_graph gives derivatives of any order") {
  const Tensor x = tensor({0.3, -1.2}, trainable);
  Tensor y = (x * x * x * x).sum();
  const double expected[][2] = {
      {4 * 0.027, 4 * -1.728}, {12 * 0.09, 12 * 1.44}, {24 * 0.3, 24 * -1.2}, {24, 24}};
  for (const auto& row : expected) {
    const Tensor d = grad({y}, {x}, {.create_graph = true})[0];
    CHECK(allclose(d, {row[0], row[1]}, {1e-12, 1e-12}));
    y = d.sum();
  }
}

TEST_CASE("gradients of gradients reach leaves and cotangents") {
  const Tensor x = random({3}, 1).requires_grad_();
  const Tensor v = random({3}, 2).requires_grad_();
  const Tensor g = grad({x.exp()}, {x}, {.grad_outputs = {v}, .create_graph = true})[0];
  g.sum().backward();
  CHECK(allclose(x.grad(), (v * x.exp()).detach(), {1e-12, 1e-12}));
  CHECK(allclose(v.grad(), x.exp().detach(), {1e-12, 1e-12}));
}

TEST_CASE("grad of the same input listed twice, and of an intermediate") {
  const Tensor x = tensor({2.0}, trainable);
  const Tensor y = x * x;
  const TensorList g = grad({(y * y).sum()}, {y, x, x});
  CHECK(g[0].item() == 8.0);
  CHECK(g[1].item() == 32.0);
  CHECK(g[2].item() == 32.0);
}

TEST_CASE("leaves never share a gradient, also under create_graph") {
  const Tensor a = tensor({1.0, 2.0}, trainable);
  const Tensor b = tensor({3.0, 4.0}, trainable);
  const Tensor seed = tensor({1.0, 1.0}, {.dtype = float64});
  for (const bool create_graph : {false, true}) {
    a.set_grad({});
    b.set_grad({});
    (a + b).backward(seed, {.create_graph = create_graph});
    const NoGradGuard no_grad;
    a.grad().mul_(5.0);  // as clip_grad_norm_ does
    CHECK(allclose(b.grad(), {1.0, 1.0}));
    CHECK(allclose(seed, {1.0, 1.0}));
  }
}

}  // namespace norma::test
