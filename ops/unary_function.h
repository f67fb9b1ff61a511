// The one Function behind every differentiable operation of one tensor. For ops/*.cpp only.
#pragma once

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/ops/backend.h"

namespace norma::detail {

/// What the backward of a unary operation needs.
enum class Saves : std::uint8_t { nothing, input, output };

/// `Rule` gives: `name`, `op` (the kernel), `saves`, and `derivative(saved, dy)`, the gradient in
/// differentiable operations, which runs under create_graph; otherwise the backward kernel does.
template <class Rule>
struct UnaryFunction : Function<UnaryFunction<Rule>> {
  static constexpr const char* name = Rule::name;

  static Tensor forward(Context& ctx, const Tensor& x) {
    Tensor out = empty(x.shape(), {.dtype = x.dtype(), .device = x.device()});
    backend(x).unary(Rule::op, x, out);
    if (ctx.is_recording()) {
      if constexpr (Rule::saves == Saves::input) ctx.save_for_backward({x});
      if constexpr (Rule::saves == Saves::output) ctx.save_for_backward({out});
    }
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    Tensor saved;
    if constexpr (Rule::saves != Saves::nothing) saved = ctx.saved_tensor(0);
    if (GradMode::is_enabled()) return {Rule::derivative(saved, grad_output)};
    const Tensor dy = grad_output.contiguous();
    const Tensor& kept = saved.defined() ? saved : dy;
    Tensor dx = empty(dy.shape(), {.dtype = dy.dtype(), .device = dy.device()});
    backend(dy).unary_backward(Rule::op, kept, kept, dy, dx);
    return {dx};
  }
};

/// Runs `Rule` on a floating-point tensor of any layout.
template <class Rule>
Tensor run_unary(const Tensor& x) {
  check<ValueError>(x.defined(), Rule::name,
                    "the input must be defined; got an empty Tensor handle");
  return UnaryFunction<Rule>::apply(x.contiguous());
}

/// The same for operations whose result is fractional: integers and bool become float32.
template <class Rule>
Tensor run_unary_floating(const Tensor& x) {
  check<ValueError>(x.defined(), Rule::name,
                    "the input must be defined; got an empty Tensor handle");
  return run_unary<Rule>(x.is_floating_point() ? x : x.to(float32));
}

}  // namespace norma::detail
