#include "norma/ops/linear.h"

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"

namespace norma {

namespace {

/// [..., K] as a contiguous [rows, K]; off the tape.
Tensor as_rows(const Tensor& x) {
  const std::int64_t rows = Shape(x.shape().begin(), x.shape().end() - 1).numel();
  return x.contiguous().view({rows, x.size(-1)});
}

struct Linear : Function<Linear> {
  static constexpr const char* name = "linear";

  static Tensor forward(Context& ctx, const Tensor& input, const Tensor& weight, const Tensor& bias,
                        Activation activation) {
    Shape shape = input.shape();
    shape.back() = weight.size(0);
    const TensorOptions options{.dtype = input.dtype(), .device = input.device()};
    const Tensor out = empty(shape, options);
    Tensor before;  // the activation's argument, for backward
    if (ctx.is_recording()) {
      if (activation != Activation::none) before = empty(shape, options);
      ctx.save_for_backward({input, weight, bias, before});
      ctx.set("activation", activation);
    }
    const Shape flat{Shape(shape.begin(), shape.end() - 1).numel(), shape.back()};
    backend(input).linear(as_rows(input), weight.contiguous(),
                          bias.defined() ? bias.contiguous() : Tensor(), activation,
                          before.defined() ? before.view(flat) : Tensor(), out.view(flat));
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const Tensor input = ctx.saved_tensor(0), weight = ctx.saved_tensor(1);
    const Tensor bias = ctx.saved_tensor(2), before = ctx.saved_tensor(3);
    const auto activation = ctx.get<Activation>("activation");
    if (GradMode::is_enabled())
      return composite_backward(
          [activation](const TensorList& x) {
            return TensorList{composite::linear(x[0], x[1], x[2], activation)};
          },
          {input, weight, bias}, {grad_output});

    const TensorOptions options{.dtype = input.dtype(), .device = input.device()};
    Tensor grad_input, grad_weight, grad_bias;
    if (ctx.needs_input_grad(0)) grad_input = empty(input.shape(), options);
    if (ctx.needs_input_grad(1)) grad_weight = empty(weight.shape(), options);
    if (bias.defined() && ctx.needs_input_grad(2)) grad_bias = empty(bias.shape(), options);
    const Tensor rows = as_rows(input);
    backend(input).linear_backward(
        rows, weight.contiguous(), before.defined() ? as_rows(before) : Tensor(), activation,
        as_rows(grad_output), grad_input.defined() ? grad_input.view(rows.shape()) : Tensor(),
        grad_weight, grad_bias);
    return {grad_input, grad_weight, grad_bias};
  }
};

void check_operand(const char* name, const Tensor& operand, const Tensor& input) {
  check<DTypeError>(operand.dtype() == input.dtype(), "linear",
                    "{} must have the dtype of input, {}; got {}; convert one with .to(…)", name,
                    input.dtype(), operand.dtype());
  check<DeviceError>(operand.device() == input.device(), "linear",
                     "{} must be on the device of input, {}; got {}; move one with .to(device)",
                     name, input.device(), operand.device());
}

void check_linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  check<ValueError>(input.defined() && weight.defined(), "linear",
                    "input and weight must be defined; got an undefined tensor");
  check<DTypeError>(input.is_floating_point(), "linear",
                    "input must be floating point; got {}; convert with .to(float32)",
                    input.dtype());
  check_operand("weight", weight, input);
  check<ShapeError>(weight.dim() == 1 || weight.dim() == 2, "linear",
                    "weight must be [out_features, in_features]; got {}", weight.shape());
  check<ShapeError>(
      input.dim() >= 1 && input.size(-1) == weight.size(-1), "linear",
      "the last dimension of input must be in_features = {}; got input {} and weight {}",
      weight.size(-1), input.shape(), weight.shape());
  if (!bias.defined()) return;
  check_operand("bias", bias, input);
  const Shape expected = weight.dim() == 2 ? Shape{weight.size(0)} : Shape{};
  check<ShapeError>(bias.shape() == expected || (weight.dim() == 1 && bias.shape() == Shape{1}),
                    "linear", "bias must be [out_features] = {}; got {}", expected, bias.shape());
}

}  // namespace

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias,
              Activation activation) {
  check_linear(input, weight, bias);
  if (weight.dim() == 1)
    return linear(input, weight.unsqueeze(0), bias.defined() ? bias.reshape({1}) : bias, activation)
        .squeeze(-1);
  return Linear::apply(input, weight, bias, activation);
}

Tensor activate(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return relu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu(x, "tanh");
    case Activation::silu:
      return silu(x);
  }
  return x;
}

namespace composite {

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias,
              Activation activation) {
  check_linear(input, weight, bias);
  const Tensor product = matmul(input, weight.dim() == 2 ? weight.t() : weight);
  return activate(bias.defined() ? product + bias : product, activation);
}

}  // namespace composite

}  // namespace norma
