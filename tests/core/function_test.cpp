// Users' own operations.
#include "support/catch.h"
#include "support/compare.h"

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/core/grad_mode.h"
#include "norma/core/gradcheck.h"
#include "norma/ops/elementwise.h"

namespace norma::test {
namespace {

const TensorOptions trainable{.dtype = float64, .requires_grad = true};

struct Swish : Function<Swish> {
  static constexpr const char* name = "swish";
  static Tensor forward(Context& ctx, const Tensor& x, double beta) {
    ctx.save_for_backward({x});
    ctx.set("beta", beta);
    return x * sigmoid(x * beta);
  }
  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const Tensor x = ctx.saved_tensor(0);
    const double beta = ctx.get<double>("beta");
    const Tensor s = sigmoid(x * beta);
    return {grad_output * (s + x * beta * s * (1.0 - s))};
  }
};

/// Two outputs, a list argument, an unused output.
struct SumAndFirst : Function<SumAndFirst> {
  static TensorList forward(Context& ctx, const TensorList& xs, bool negate) {
    ctx.set("count", xs.size());
    ctx.set("negate", negate);
    Tensor sum = xs[0];
    for (std::size_t i = 1; i < xs.size(); ++i) sum = sum + xs[i];
    return {negate ? -sum : sum, xs[0]};
  }
  static TensorList backward(Context& ctx, const TensorList& grads) {
    TensorList result(ctx.get<std::size_t>("count"),
                      ctx.get<bool>("negate") ? -grads[0] : grads[0]);
    result[0] = result[0] + grads[1];
    return result;
  }
};

struct WrongShape : Function<WrongShape> {
  static constexpr const char* name = "wrong_shape";
  static Tensor forward(Context&, const Tensor& x) { return x + 0.0; }
  static TensorList backward(Context&, const Tensor&) { return {zeros({7}, {.dtype = float64})}; }
};
struct WrongCount : Function<WrongCount> {
  static constexpr const char* name = "wrong_count";
  static Tensor forward(Context&, const Tensor& x, const Tensor&) { return x + 0.0; }
  static TensorList backward(Context&, const Tensor& g) { return {g}; }
};
struct WrongType : Function<WrongType> {
  static constexpr const char* name = "wrong_type";
  static Tensor forward(Context& ctx, const Tensor& x) {
    ctx.set("k", 1);
    return x + 0.0;
  }
  static TensorList backward(Context& ctx, const Tensor& g) { return {g * ctx.get<double>("k")}; }
};

struct Probe : Function<Probe> {
  static TensorList forward(Context& ctx, const Tensor& a, const Tensor& b) {
    recorded = ctx.is_recording();
    needs_b = ctx.needs_input_grad(1);
    const Tensor rank = a + 0.0;
    ctx.mark_non_differentiable({rank});
    return {a * b, rank};
  }
  static TensorList backward(Context& ctx, const TensorList& g) {
    CHECK_FALSE(ctx.needs_input_grad(1));
    return {g[0], Tensor()};
  }
  inline static bool recorded = false;
  inline static bool needs_b = true;
};

/// In place, by the public means.
struct Doubled : Function<Doubled> {
  static constexpr const char* name = "doubled";
  static Tensor forward(Context& ctx, const Tensor& x) {
    ctx.mark_dirty({x});
    const NoGradGuard no_grad;
    return x.mul_(2.0);
  }
  static TensorList backward(Context&, const Tensor& grad) { return {grad * 2.0}; }
};

/// Sees which of its outputs got a gradient.
struct Parts : Function<Parts> {
  static TensorList forward(Context& ctx, const Tensor& x) {
    ctx.set_materialize_grads(false);
    return {x * 2.0, x * 3.0};
  }
  static TensorList backward(Context&, const TensorList& grads) {
    CHECK(grads[0].defined());
    CHECK_FALSE(grads[1].defined());
    return {grads[0] * 2.0};
  }
};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a user's operation has derivatives of first and second order") {
  const Tensor x = random({3, 4}, 3).requires_grad_();
  const auto swish = [](const TensorList& in) { return Swish::apply(in[0], 1.5); };
  const auto first = gradcheck(swish, {x});
  INFO(first.message);
  CHECK(first);
  const auto second = gradgradcheck(swish, {x});
  INFO(second.message);
  CHECK(second);
  CHECK(Swish::apply(x, 1.5).grad_fn()->name() == "swish");
}

TEST_CASE("list arguments and several outputs") {
  const Tensor a = full({2}, 1.0, trainable);
  const Tensor b = full({2}, 2.0, trainable);
  const TensorList out = SumAndFirst::apply(TensorList{a, b}, true);
  CHECK(allclose(out[0].detach(), {-3.0, -3.0}));
  out[0].sum().backward();  // the gradient of the second output arrives as zeros
  CHECK(allclose(a.grad(), {-1.0, -1.0}));
  CHECK(allclose(b.grad(), {-1.0, -1.0}));
  CHECK_FALSE(out[1].is_same(a));
}

TEST_CASE("wrong gradients are named") {
  const Tensor x = full({2}, 1.0, trainable);
  CHECK(message_of([&] {
          WrongShape::apply(x).sum().backward();
        }).find("[wrong_shape] gradient 0") == 0);
  CHECK(message_of([&] { WrongCount::apply(x, x).sum().backward(); }).find("[wrong_count]") == 0);
  CHECK(message_of([&] { WrongType::apply(x).sum().backward(); }).find("[wrong_type]") == 0);
}

TEST_CASE("outputs without derivative, needs_input_grad, and no recording without need") {
  const Tensor a = full({2}, 1.0, trainable);
  const Tensor b = full({2}, 2.0, {.dtype = float64});
  const TensorList out = Probe::apply(a, b);
  CHECK(Probe::recorded);
  CHECK_FALSE(Probe::needs_b);
  CHECK(out[0].requires_grad());
  CHECK_FALSE(out[1].requires_grad());
  out[0].sum().backward();
  Probe::apply(a.detach(), b);
  CHECK_FALSE(Probe::recorded);
}

TEST_CASE("mark_dirty: the changed input is the output, with its history and version") {
  const Tensor x = full({2}, 3.0, trainable);
  const Tensor y = x * 1.0;
  const std::uint64_t version = y.version();
  const Tensor same = Doubled::apply(y);
  CHECK(same.is_same(y));
  CHECK(y.version() > version);
  CHECK(y.grad_fn()->name() == "doubled");
  y.sum().backward();
  CHECK(allclose(x.grad(), {2.0, 2.0}));
  CHECK(message_of([&] { Doubled::apply(x); }).find("[doubled] a leaf") == 0);
}

TEST_CASE("without materialized gradients an unused output has none") {
  const Tensor x = full({2}, 3.0, trainable);
  Parts::apply(x)[0].sum().backward();
  CHECK(allclose(x.grad(), {2.0, 2.0}));
}

}  // namespace norma::test
