#include "norma/ops/dropout.h"

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/ops/backend.h"
#include "norma/ops/elementwise.h"

namespace norma {

namespace {

/// Linear in x with a fixed mask, so it is its own backward, at every order.
struct Dropout : Function<Dropout> {
  static constexpr const char* name = "dropout";

  static Tensor forward(Context& ctx, const Tensor& x, double p, const PhiloxState& state) {
    if (ctx.is_recording()) {
      ctx.set("p", p);
      ctx.set("state", state);
    }
    Tensor out = empty_like(x);
    backend(x).dropout(x, p, state, out);
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    return {Dropout::apply(grad_output.contiguous(), ctx.get<double>("p"),
                           ctx.get<PhiloxState>("state"))};
  }
};

void check_arguments(const Tensor& x, double p) {
  check<ValueError>(x.defined(), "dropout",
                    "the input must be defined; got an empty Tensor handle");
  check<DTypeError>(x.is_floating_point(), "dropout",
                    "needs a floating-point tensor; got {}; convert with .to(float32)", x.dtype());
  check<ValueError>(p >= 0.0 && p <= 1.0, "dropout", "p must be in [0, 1]; got {}", p);
}

}  // namespace

namespace detail {

Tensor dropout(const Tensor& x, double p, const PhiloxState& state) {
  check_arguments(x, p);
  return Dropout::apply(x.contiguous(), p, state);
}

Tensor dropout_mask(const Shape& shape, double p, const PhiloxState& state, const Device& device) {
  const Tensor kept = full(shape, 1.0, {.dtype = float32, .device = device});
  const NoGradGuard no_grad;
  return detail::dropout(kept, p, state) != 0.0;
}

}  // namespace detail

namespace composite {

Tensor dropout(const Tensor& x, double p, const PhiloxState& state) {
  const Tensor mask = detail::dropout_mask(x.shape(), p, state, x.device());
  return masked_fill(x / (p < 1.0 ? 1.0 - p : 1.0), logical_not(mask), 0.0);
}

}  // namespace composite

Tensor dropout(const Tensor& x, double p, bool training) {
  check_arguments(x, p);
  if (!training || p == 0.0) return x;
  return detail::dropout(x, p, default_generator(x.device()).reserve(x.numel()));
}

}  // namespace norma
