#include "norma/ops/elementwise.h"
#include "norma/ops/unary_function.h"

#include <numbers>

namespace norma {

namespace {

using detail::Saves;

// A rule is the name, the kernel, what backward needs, and the derivative from that (`v`) in
// differentiable operations.
#define NORMA_UNARY_RULE(NAME, SAVES, DERIVATIVE)                                  \
  struct NAME##_rule {                                                             \
    static constexpr const char* name = #NAME;                                     \
    static constexpr UnaryOp op = UnaryOp::NAME;                                   \
    static constexpr Saves saves = Saves::SAVES;                                   \
    static Tensor derivative([[maybe_unused]] const Tensor& v, const Tensor& dy) { \
      return DERIVATIVE;                                                           \
    }                                                                              \
  };

NORMA_UNARY_RULE(neg, nothing, -dy)
NORMA_UNARY_RULE(abs, input, dy* sign(v))
NORMA_UNARY_RULE(exp, output, dy* v)
NORMA_UNARY_RULE(log, input, dy / v)
NORMA_UNARY_RULE(log1p, input, dy / (v + 1.0))
NORMA_UNARY_RULE(sqrt, output, dy / (v * 2.0))
NORMA_UNARY_RULE(rsqrt, output, dy* v* v* v * -0.5)
NORMA_UNARY_RULE(reciprocal, output, -dy* v* v)
NORMA_UNARY_RULE(square, input, dy* v * 2.0)
NORMA_UNARY_RULE(sin, input, dy* cos(v))
NORMA_UNARY_RULE(cos, input, -dy* sin(v))
NORMA_UNARY_RULE(tanh, output, dy*(1.0 - v * v))
NORMA_UNARY_RULE(sigmoid, output, dy* v*(1.0 - v))
NORMA_UNARY_RULE(erf, input, dy*(exp(-square(v)) * (2.0 * std::numbers::inv_sqrtpi)))
#undef NORMA_UNARY_RULE

/// The gradient of sign is 0 everywhere, as in PyTorch; the tape stays connected.
struct Sign : Function<Sign> {
  static constexpr const char* name = "sign";
  static Tensor forward(Context& /*ctx*/, const Tensor& x) {
    Tensor out = empty_like(x);
    backend(x).unary(UnaryOp::sign, x, out);
    return out;
  }
  static TensorList backward(Context& /*ctx*/, const Tensor& dy) { return {zeros_like(dy)}; }
};

void check_defined(const Tensor& x, const char* name) {
  check<ValueError>(x.defined(), name, "the input must be defined; got an empty Tensor handle");
}

/// An operation on an integer tensor, without gradient.
Tensor integer_unary(UnaryOp op, const Tensor& x) {
  const Tensor input = x.contiguous();
  Tensor out = empty(x.shape(), {.dtype = x.dtype(), .device = x.device()});
  backend(x).unary(op, input, out);
  return out;
}

Tensor predicate(UnaryOp op, const char* name, const Tensor& x) {
  check_defined(x, name);
  const NoGradGuard no_grad;
  const Tensor input = x.contiguous();
  Tensor out = empty(x.shape(), {.dtype = DType::bool_, .device = x.device()});
  backend(x).unary(op, input, out);
  return out;
}

}  // namespace

Tensor neg(const Tensor& x) {
  check_defined(x, "neg");
  check<DTypeError>(x.dtype() != DType::bool_, "neg",
                    "needs a number; got a bool tensor; use logical_not");
  return x.is_floating_point() ? detail::run_unary<neg_rule>(x) : integer_unary(UnaryOp::neg, x);
}
Tensor abs(const Tensor& x) {
  check_defined(x, "abs");
  return x.is_floating_point() ? detail::run_unary<abs_rule>(x) : integer_unary(UnaryOp::abs, x);
}
Tensor square(const Tensor& x) {
  check_defined(x, "square");
  return x.is_floating_point() ? detail::run_unary<square_rule>(x)
                               : integer_unary(UnaryOp::square, x);
}
Tensor sign(const Tensor& x) {
  check_defined(x, "sign");
  return x.is_floating_point() ? Sign::apply(x.contiguous()) : integer_unary(UnaryOp::sign, x);
}

Tensor exp(const Tensor& x) { return detail::run_unary_floating<exp_rule>(x); }
Tensor log(const Tensor& x) { return detail::run_unary_floating<log_rule>(x); }
Tensor log1p(const Tensor& x) { return detail::run_unary_floating<log1p_rule>(x); }
Tensor sqrt(const Tensor& x) { return detail::run_unary_floating<sqrt_rule>(x); }
Tensor rsqrt(const Tensor& x) { return detail::run_unary_floating<rsqrt_rule>(x); }
Tensor reciprocal(const Tensor& x) { return detail::run_unary_floating<reciprocal_rule>(x); }
Tensor sin(const Tensor& x) { return detail::run_unary_floating<sin_rule>(x); }
Tensor cos(const Tensor& x) { return detail::run_unary_floating<cos_rule>(x); }
Tensor tanh(const Tensor& x) { return detail::run_unary_floating<tanh_rule>(x); }
Tensor sigmoid(const Tensor& x) { return detail::run_unary_floating<sigmoid_rule>(x); }
Tensor erf(const Tensor& x) { return detail::run_unary_floating<erf_rule>(x); }

Tensor logical_not(const Tensor& x) { return predicate(UnaryOp::logical_not, "logical_not", x); }
Tensor isnan(const Tensor& x) { return predicate(UnaryOp::isnan, "isnan", x); }
Tensor isfinite(const Tensor& x) { return predicate(UnaryOp::isfinite, "isfinite", x); }

}  // namespace norma
