// gradcheck must find planted errors: a checker that cannot fail proves nothing.
#include "support/catch.h"
#include "support/compare.h"

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/core/gradcheck.h"
#include "norma/core/random.h"
#include "norma/core/tensor_impl.h"
#include "norma/ops/elementwise.h"

namespace norma::test {
namespace {

Tensor input(const Shape& shape) { return random(shape, 11).requires_grad_(); }

/// x^2 with a derivative that is wrong in one element.
struct OneElementWrong : Function<OneElementWrong> {
  static Tensor forward(Context& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x;
  }
  static TensorList backward(Context& ctx, const Tensor& g) {
    const Tensor result = (g * ctx.saved_tensor(0) * 2.0).clone();
    result.data<double>()[4] *= 1.01;
    return {result};
  }
};

/// x - mean(x) with the mean forgotten in backward: invisible to a cotangent of ones only on the
/// other side.
struct CentreWrong : Function<CentreWrong> {
  static Tensor forward(Context&, const Tensor& x) { return x - x.mean(); }
  static TensorList backward(Context&, const Tensor& g) { return {g}; }
};

/// Reads its gradient as if it were contiguous.
struct AssumesContiguous : Function<AssumesContiguous> {
  static Tensor forward(Context&, const Tensor& x) { return x * 2.0; }
  static TensorList backward(Context&, const Tensor& g) {
    const Tensor result = empty(g.shape(), {.dtype = float64});
    const bool broken = !g.is_contiguous();
    for (std::int64_t i = 0; i < g.numel(); ++i)
      result.data<double>()[i] = 2.0 * (broken ? g.data<double>()[0] + 0.1 : g.data<double>()[i]);
    return {result};
  }
};

struct NotRepeatable : Function<NotRepeatable> {
  static Tensor forward(Context&, const Tensor& x) { return x * 2.0; }
  static TensorList backward(Context&, const Tensor& g) {
    static double drift = 0.0;
    drift += 1e-9;
    return {g * (2.0 + drift)};
  }
};

struct ZeroBecomesNan : Function<ZeroBecomesNan> {
  static Tensor forward(Context&, const Tensor& x) { return x * 2.0; }
  static TensorList backward(Context&, const Tensor& g) { return {g * g * 2.0 / g}; }
};

/// Right to first order; the second derivative is lost, because backward leaves the graph.
struct CutGraph : Function<CutGraph> {
  static Tensor forward(Context& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x * x;
  }
  static TensorList backward(Context& ctx, const Tensor& g) {
    const Tensor x = ctx.saved_tensor(0).detach();
    return {g * x * x * 3.0};
  }
};

template <class T>
GradcheckReport check_of(const GradcheckOptions& options = {}) {
  return gradcheck([](const TensorList& in) { return T::apply(in[0]); }, {input({2, 3})}, options);
}

}  // namespace

TEST_CASE("gradcheck passes what is right, in both modes") {
  const auto product = [](const TensorList& in) { return in[0] * in[1].exp(); };
  CHECK(gradcheck(product, {input({2, 3}), input({3})}));
  CHECK(gradcheck(product, {input({2, 3}), input({3})}, {.fast_mode = true}));
  CHECK(gradgradcheck(product, {input({2, 3}), input({3})}));
  CHECK(gradgradcheck(product, {input({2, 3}), input({3})}, {.fast_mode = true}));
}

TEST_CASE("gradcheck names input, element, both values and the error") {
  const auto report = check_of<OneElementWrong>();
  CHECK_FALSE(report);
  REQUIRE(report.worst.size() == 1);
  CHECK(report.worst[0].input == 0);
  CHECK(report.worst[0].index == Shape{1, 1});
  CHECK(report.worst[0].relative_error == Approx(0.01 / 1.01).epsilon(1e-3));
  for (const char* part : {"input 0", "[1, 1]", "analytic", "numeric", "relative error"})
    CHECK(report.message.find(part) != std::string::npos);
  CHECK_FALSE(check_of<OneElementWrong>({.fast_mode = true}));
}

TEST_CASE("gradcheck finds what planted errors break") {
  CHECK_FALSE(check_of<CentreWrong>());
  CHECK(check_of<AssumesContiguous>().message.find("non-contiguous") != std::string::npos);
  CHECK(check_of<AssumesContiguous>({.check_noncontiguous = false}));
  CHECK(check_of<NotRepeatable>().message.find("repeatable") != std::string::npos);
  CHECK(check_of<NotRepeatable>({.nondet_tol = 1e-6}));
  CHECK(check_of<ZeroBecomesNan>().message.find("zero cotangent") != std::string::npos);
}

TEST_CASE("gradcheck finds one cut output among several") {
  const auto cut = [](const TensorList& in) {
    return TensorList{in[0] * 2.0, (in[0] * 3.0).detach()};
  };
  CHECK(gradcheck(cut, {input({3})}).message.find("output 1") != std::string::npos);
  CHECK(gradcheck(cut, {input({3})}, {.allow_non_differentiable = true}));
}

TEST_CASE("gradgradcheck finds a backward that leaves the graph") {
  CHECK(check_of<CutGraph>());
  CHECK_FALSE(
      gradgradcheck([](const TensorList& in) { return CutGraph::apply(in[0]); }, {input({3})}));
}

TEST_CASE(
    "gradcheck lists the worst few, warns in single precision, and leaves inputs and generator "
    "alone") {
  const Tensor x = input({20});
  const std::vector<double> before = x.to_vector<double>();
  const PhiloxState state = default_generator().get_state();
  const auto report = gradcheck([](const TensorList& in) { return CentreWrong::apply(in[0]); }, {x},
                                {.report_worst = 3});
  CHECK(report.worst.size() == 3);
  CHECK(x.to_vector<double>() == before);
  CHECK_FALSE(x.grad().defined());
  CHECK(default_generator().get_state().offset == state.offset);
  const auto single =
      gradcheck([](const TensorList& in) { return in[0] * in[0]; },
                {converted(x, float32).requires_grad_()}, {.eps = 1e-2, .atol = 1e-2});
  CHECK(single.warnings.size() == 1);
  CHECK_THROWS_AS(gradcheck([](const TensorList& in) { return in[0]; }, {x.detach()}),
                  AutogradError);
}

TEST_CASE("a tolerance or step of the caller's choice") {
  CHECK(check_of<OneElementWrong>({.rtol = 0.1}));
  CHECK_FALSE(check_of<OneElementWrong>({.eps = 1e-4, .rtol = 1e-5}));
}

}  // namespace norma::test
