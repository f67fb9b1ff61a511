#include "norma/ops/activation.h"

#include "norma/ops/unary_function.h"

#include <numbers>

namespace norma {

namespace composite {

Tensor relu(const Tensor& x) { return masked_fill(x, x <= 0.0, 0.0); }

Tensor gelu(const Tensor& x, std::string_view approximate) {
  if (approximate == "tanh") {
    constexpr double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    return 0.5 * x * (1.0 + tanh(scale * (x + 0.044715 * x * square(x))));
  }
  return 0.5 * x * (1.0 + erf(x / std::numbers::sqrt2));
}

Tensor silu(const Tensor& x) { return x * sigmoid(x); }

Tensor softplus(const Tensor& x, double beta) {
  // Beyond 40 the 1 is lost in float64, too; the clamp keeps exp finite in the branch not taken.
  const Tensor scaled = x * beta;
  return where(scaled > 40.0, scaled, log1p(exp(clamp(scaled, std::nullopt, 40.0)))) / beta;
}

Tensor swiglu(const Tensor& gate, const Tensor& up) { return composite::silu(gate) * up; }

}  // namespace composite

namespace {

using detail::Saves;

/// The gradient of `twin` at v, for create_graph.
template <class Twin>
Tensor twin_derivative(Twin twin, const Tensor& v, const Tensor& dy) {
  return composite_backward([&](const TensorList& in) { return TensorList{twin(in[0])}; }, {v},
                            {dy})[0];
}

struct ReluRule {
  static constexpr const char* name = "relu";
  static constexpr UnaryOp op = UnaryOp::relu;
  static constexpr Saves saves = Saves::output;
  static Tensor derivative(const Tensor& y, const Tensor& dy) {
    return masked_fill(dy, y <= 0.0, 0.0);
  }
};

template <bool with_tanh>
struct GeluRule {
  static constexpr const char* name = "gelu";
  static constexpr UnaryOp op = with_tanh ? UnaryOp::gelu_tanh : UnaryOp::gelu;
  static constexpr Saves saves = Saves::input;
  static Tensor derivative(const Tensor& x, const Tensor& dy) {
    const auto twin = [](const Tensor& v) {
      return composite::gelu(v, with_tanh ? "tanh" : "none");
    };
    return twin_derivative(twin, x, dy);
  }
};

struct SiluRule {
  static constexpr const char* name = "silu";
  static constexpr UnaryOp op = UnaryOp::silu;
  static constexpr Saves saves = Saves::input;
  static Tensor derivative(const Tensor& x, const Tensor& dy) {
    return twin_derivative(composite::silu, x, dy);
  }
};

struct SoftplusRule {
  static constexpr const char* name = "softplus";
  static constexpr UnaryOp op = UnaryOp::softplus;
  static constexpr Saves saves = Saves::input;
  static Tensor derivative(const Tensor& x, const Tensor& dy) { return dy * sigmoid(x); }
};

struct SwiGlu : Function<SwiGlu> {
  static constexpr const char* name = "swiglu";

  static Tensor forward(Context& ctx, const Tensor& gate, const Tensor& up) {
    if (ctx.is_recording()) ctx.save_for_backward({gate, up});
    Tensor out = empty_like(gate);
    backend(gate).swiglu(gate, up, out);
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const Tensor gate = ctx.saved_tensor(0);
    const Tensor up = ctx.saved_tensor(1);
    if (GradMode::is_enabled())
      return composite_backward(
          [](const TensorList& in) { return TensorList{composite::swiglu(in[0], in[1])}; },
          {gate, up}, {grad_output});
    Tensor dgate, dup;
    if (ctx.needs_input_grad(0)) dgate = empty_like(gate);
    if (ctx.needs_input_grad(1)) dup = empty_like(up);
    backend(gate).swiglu_backward(gate, up, grad_output.contiguous(), dgate, dup);
    return {dgate, dup};
  }
};

void check_floating(const Tensor& x, const char* name) {
  check<ValueError>(x.defined(), name, "the input must be defined; got an empty Tensor handle");
  check<DTypeError>(x.is_floating_point(), name,
                    "needs a floating-point tensor; got {}; convert with .to(float32)", x.dtype());
}

}  // namespace

Tensor relu(const Tensor& x) {
  check_floating(x, "relu");
  return detail::run_unary<ReluRule>(x);
}

Tensor gelu(const Tensor& x, std::string_view approximate) {
  check_floating(x, "gelu");
  check<ValueError>(approximate == "none" || approximate == "tanh", "gelu",
                    "approximate must be \"none\" or \"tanh\"; got \"{}\"", approximate);
  return approximate == "tanh" ? detail::run_unary<GeluRule<true>>(x)
                               : detail::run_unary<GeluRule<false>>(x);
}

Tensor silu(const Tensor& x) {
  check_floating(x, "silu");
  return detail::run_unary<SiluRule>(x);
}

Tensor softplus(const Tensor& x, double beta) {
  check_floating(x, "softplus");
  check<ValueError>(beta > 0.0, "softplus", "beta must be positive; got {}", beta);
  if (beta == 1.0) return detail::run_unary<SoftplusRule>(x);
  return detail::run_unary<SoftplusRule>(x * beta) / beta;
}

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  check_floating(gate, "swiglu");
  check_floating(up, "swiglu");
  check<ShapeError>(gate.shape() == up.shape(), "swiglu",
                    "gate and up must have one shape; got {} and {}", gate.shape(), up.shape());
  check<DTypeError>(gate.dtype() == up.dtype(), "swiglu",
                    "gate and up must have one dtype; got {} and {}", gate.dtype(), up.dtype());
  check<DeviceError>(gate.device() == up.device(), "swiglu",
                     "gate and up must be on one device; got {} and {}", gate.device(),
                     up.device());
  return SwiGlu::apply(gate.contiguous(), up.contiguous());
}

}  // namespace norma
