// The life of a graph: ownership, depth, memory, release.
#include "support/catch.h"
#include "support/compare.h"
#include "support/sanitizers.h"

#include "norma/core/allocator.h"
#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/core/node.h"
#include "norma/ops/elementwise.h"

#include <stdexcept>

namespace norma::test {
namespace {

const TensorOptions trainable{.dtype = float64, .requires_grad = true};

/// Saves its input, so that a chain of them also hangs together through saved tensors.
struct Keep : Function<Keep> {
  static constexpr const char* name = "keep";
  static Tensor forward(Context& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x + 1.0;
  }
  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    (void)ctx.saved_tensor(0);
    return {grad_output};
  }
};

/// Deep enough to overflow the stack if anything recursed: also with a tenth of it under
/// AddressSanitizer, whose frames are larger.
constexpr std::int64_t depth = sanitized ? 100'000 : 1'000'000;

}  // namespace

TEST_CASE("a chain of a million operations runs forward, backward and is destroyed") {
  const std::int64_t before = Node::live_count();
  const Tensor x = full({}, 0.5, trainable);
  {
    Tensor y = x;
    for (std::int64_t i = 0; i < depth; ++i) y = y + 1e-6;
    CHECK(Node::live_count() - before == depth + 1);
    y.backward();
    CHECK(x.grad().item() == 1.0);
  }
  CHECK(Node::live_count() == before);
}

TEST_CASE("a million operations that save their inputs are destroyed without recursion") {
  const std::int64_t before = Node::live_count();
  {
    Tensor y = full({}, 0.5, trainable);
    for (std::int64_t i = 0; i < depth; ++i) y = Keep::apply(y);
    // Thrown away without backward: the chain hangs through edges and saved tensors alike.
  }
  CHECK(Node::live_count() == before);
}

TEST_CASE("a forward-only loop of 10,000 steps stays at flat memory") {
  const Tensor w = full({64, 64}, 0.01, {.requires_grad = true});
  const std::int64_t nodes = Node::live_count();
  const int steps = sanitized ? 1'000 : 10'000;
  std::int64_t after_warm_up = 0;
  for (int step = 0; step < steps; ++step) {
    const Tensor y = (w * w + 1.0).sum();
    if (step == 10) after_warm_up = memory_stats().current;
    if (step > 10) REQUIRE(memory_stats().current == after_warm_up);
  }
  // What is left is the node at the leaf, at most.
  CHECK(Node::live_count() <= nodes + 1);
}

TEST_CASE("no node is left after normal use, an exception, or a graph thrown away") {
  const std::int64_t before = Node::live_count();
  {
    const Tensor x = full({3}, 2.0, trainable);
    (x * x).sum().backward();
  }
  CHECK(Node::live_count() == before);
  {
    const Tensor x = full({3}, 2.0, trainable);
    CHECK_THROWS_AS(
        [&] {
          const Tensor y = x * x;
          const Tensor bad = y + full({4}, 1.0, {.dtype = float64});
        }(),
        ShapeError);
    struct Throws : Function<Throws> {
      static Tensor forward(Context& ctx, const Tensor& t) {
        ctx.save_for_backward({t});
        throw std::runtime_error("user code failed");
      }
      static TensorList backward(Context&, const Tensor& g) { return {g}; }
    };
    CHECK_THROWS_AS(Throws::apply(x * x), std::runtime_error);
  }
  CHECK(Node::live_count() == before);
  {
    struct ThrowsBackward : Function<ThrowsBackward> {
      static Tensor forward(Context&, const Tensor& t) { return t + 0.0; }
      static TensorList backward(Context&, const Tensor&) {
        throw std::runtime_error("user code failed");
      }
    };
    const Tensor x = full({3}, 2.0, trainable);
    const Tensor y = ThrowsBackward::apply(x * x).sum();
    CHECK_THROWS_AS(y.backward(), std::runtime_error);
  }
  CHECK(Node::live_count() == before);
  {
    const Tensor x = full({3}, 2.0, trainable);
    const Tensor y = (x * x).exp().sum();
  }
  CHECK(Node::live_count() == before);
  {
    // A saved input that becomes part of the graph that saved it.
    const Tensor x = full({3}, 2.0, {.dtype = float64}), w = full({3}, 2.0, trainable);
    x.add_(x * w);
    CHECK(x.requires_grad());
    CHECK_THROWS_AS(x.sum().backward(), AutogradError);
  }
  CHECK(Node::live_count() == before);
}

TEST_CASE("saved values are released as the replay passes, unless retained") {
  const Tensor x = full({1 << 16}, 2.0, {.requires_grad = true});
  const Tensor y = x.exp().exp().exp().sum();
  const std::int64_t held = memory_stats().current;
  y.backward({}, {.retain_graph = true});
  CHECK(memory_stats().current >= held);
  y.backward();
  CHECK(memory_stats().current < held);
}

TEST_CASE("a second backward says what to do") {
  const Tensor x = full({3}, 2.0, trainable);
  const Tensor y = (x * x).sum();
  y.backward();
  try {
    y.backward();
    FAIL("no error");
  } catch (const AutogradError& error) {
    const std::string text = error.what();
    CHECK(text.find("[mul]") != std::string::npos);
    CHECK(text.find("retain_graph") != std::string::npos);
  }
  CHECK(allclose(x.grad(), {4.0, 4.0, 4.0}));  // the failed run added nothing
}

TEST_CASE("retain_graph allows a second backward, and gradients add up") {
  const Tensor x = full({3}, 2.0, trainable);
  const Tensor y = (x * x).sum();
  y.backward({}, {.retain_graph = true});
  y.backward();
  CHECK(allclose(x.grad(), {8.0, 8.0, 8.0}));
}

TEST_CASE("only the part of the graph that leads to the inputs runs") {
  static int runs = 0;
  struct Counted : Function<Counted> {
    static Tensor forward(Context&, const Tensor& t) { return t + 0.0; }
    static TensorList backward(Context&, const Tensor& g) {
      ++runs;
      return {g};
    }
  };
  runs = 0;
  const Tensor a = full({2}, 1.0, trainable);
  const Tensor b = full({2}, 3.0, trainable);
  const Tensor y = (Counted::apply(a) * b).sum();
  const TensorList gradients = grad({y}, {b});
  CHECK(runs == 0);
  CHECK(allclose(gradients[0], {1.0, 1.0}));
  CHECK_FALSE(a.grad().defined());
}

}  // namespace norma::test
