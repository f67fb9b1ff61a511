#include "norma/ops/norm.h"

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/ops/backend.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduction.h"
#include "norma/ops/rows.h"

#include <limits>

namespace norma {

namespace {

double default_eps(DType dtype) {
  return dtype == float64 ? std::numeric_limits<double>::epsilon()
                          : static_cast<double>(std::numeric_limits<float>::epsilon());
}

/// The last dims.size() dimensions, as negative numbers.
Shape last_dims(std::int64_t count) {
  Shape dims;
  for (std::int64_t i = count; i > 0; --i) dims.push_back(-i);
  return dims;
}

Tensor flat(const Tensor& parameter) {
  return parameter.defined() ? parameter.detach().view({parameter.numel()}) : parameter;
}

/// An output of the shape of `parameter`, if its gradient is wanted.
Tensor gradient_for(const Tensor& parameter, bool wanted) {
  return wanted && parameter.defined() ? empty_like(parameter) : Tensor();
}

/// Statistics [rows], if someone will read them.
Tensor statistics(const Tensor& rows, bool wanted) {
  if (!wanted) return {};
  return empty({rows.size(0)},
               {.dtype = detail::accumulate_dtype(rows.dtype()), .device = rows.device()});
}

struct LayerNorm : Function<LayerNorm> {
  static constexpr const char* name = "layer_norm";

  static Tensor forward(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        std::int64_t dims, double eps) {
    Tensor out = empty_like(x);
    const Tensor rows = detail::as_rows(x, dims);
    const Tensor mean = statistics(rows, ctx.is_recording());
    const Tensor rstd = statistics(rows, ctx.is_recording());
    backend(x).layer_norm(rows, flat(weight), flat(bias), eps, detail::as_rows(out, dims), mean,
                          rstd);
    if (ctx.is_recording()) {
      ctx.save_for_backward({x, weight, bias, mean, rstd});
      ctx.set("dims", dims);
      ctx.set("eps", eps);
    }
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor& x = saved[0];
    const Tensor& weight = saved[1];
    const Tensor& bias = saved[2];
    const auto dims = ctx.get<std::int64_t>("dims");
    if (GradMode::is_enabled()) {
      const Shape normalized(x.shape().end() - dims, x.shape().end());
      const double eps = ctx.get<double>("eps");
      return composite_backward(
          [&](const TensorList& in) {
            return TensorList{composite::layer_norm(in[0], normalized, in[1], in[2], eps)};
          },
          {x, weight, bias}, {grad_output});
    }
    const Tensor dx = gradient_for(x, ctx.needs_input_grad(0));
    const Tensor dweight = gradient_for(weight, ctx.needs_input_grad(1));
    const Tensor dbias = gradient_for(bias, ctx.needs_input_grad(2));
    backend(x).layer_norm_backward(detail::as_rows(x, dims), flat(weight), saved[3], saved[4],
                                   detail::as_rows(grad_output.contiguous(), dims),
                                   detail::as_rows(dx, dims), flat(dweight), flat(dbias));
    return {dx, dweight, dbias};
  }
};

struct RmsNorm : Function<RmsNorm> {
  static constexpr const char* name = "rms_norm";

  static Tensor forward(Context& ctx, const Tensor& x, const Tensor& weight, std::int64_t dims,
                        double eps) {
    Tensor out = empty_like(x);
    const Tensor rows = detail::as_rows(x, dims);
    const Tensor rstd = statistics(rows, ctx.is_recording());
    backend(x).rms_norm(rows, flat(weight), eps, detail::as_rows(out, dims), rstd);
    if (ctx.is_recording()) {
      ctx.save_for_backward({x, weight, rstd});
      ctx.set("dims", dims);
      ctx.set("eps", eps);
    }
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor& x = saved[0];
    const Tensor& weight = saved[1];
    const auto dims = ctx.get<std::int64_t>("dims");
    if (GradMode::is_enabled()) {
      const Shape normalized(x.shape().end() - dims, x.shape().end());
      const double eps = ctx.get<double>("eps");
      return composite_backward(
          [&](const TensorList& in) {
            return TensorList{composite::rms_norm(in[0], normalized, in[1], eps)};
          },
          {x, weight}, {grad_output});
    }
    const Tensor dx = gradient_for(x, ctx.needs_input_grad(0));
    const Tensor dweight = gradient_for(weight, ctx.needs_input_grad(1));
    backend(x).rms_norm_backward(detail::as_rows(x, dims), flat(weight), saved[2],
                                 detail::as_rows(grad_output.contiguous(), dims),
                                 detail::as_rows(dx, dims), flat(dweight));
    return {dx, dweight};
  }
};

void check_input(const char* name, const Tensor& input, const Shape& normalized_shape, double eps) {
  check<ValueError>(input.defined(), name, "the input must be defined; got an empty Tensor handle");
  check<DTypeError>(input.is_floating_point(), name,
                    "needs a floating-point input; got {}; convert with .to(float32)",
                    input.dtype());
  const std::int64_t dims = normalized_shape.size();
  check<ShapeError>(dims >= 1, name, "normalized_shape must have a dimension; got {}",
                    normalized_shape);
  check<ShapeError>(input.dim() >= dims &&
                        Shape(input.shape().end() - dims, input.shape().end()) == normalized_shape,
                    name, "the input's last dimensions must be normalized_shape {}; got {}",
                    normalized_shape, input.shape());
  check<ValueError>(eps >= 0.0, name, "eps must not be negative; got {}", eps);
}

void check_parameter(const char* name, const char* what, const Tensor& parameter,
                     const Tensor& input, const Shape& normalized_shape) {
  if (!parameter.defined()) return;
  check<ShapeError>(parameter.shape() == normalized_shape, name,
                    "{} must have the shape normalized_shape {}; got {}", what, normalized_shape,
                    parameter.shape());
  check<DTypeError>(parameter.dtype() == input.dtype(), name,
                    "{} must have the input's dtype {}; got {}; convert one with .to(dtype)", what,
                    input.dtype(), parameter.dtype());
  check<DeviceError>(parameter.device() == input.device(), name,
                     "{} must be on the input's device {}; got {}; move one with .to(device)", what,
                     input.device(), parameter.device());
}

Tensor contiguous_or_undefined(const Tensor& tensor) {
  return tensor.defined() ? tensor.contiguous() : tensor;
}

Tensor affine(Tensor normalized, const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) normalized = normalized * detail::in_accumulate_type(weight);
  if (bias.defined()) normalized = normalized + detail::in_accumulate_type(bias);
  return normalized;
}

}  // namespace

Tensor layer_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  check_input("layer_norm", input, normalized_shape, eps);
  check_parameter("layer_norm", "weight", weight, input, normalized_shape);
  check_parameter("layer_norm", "bias", bias, input, normalized_shape);
  return LayerNorm::apply(input.contiguous(), contiguous_or_undefined(weight),
                          contiguous_or_undefined(bias), normalized_shape.size(), eps);
}

Tensor rms_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  check_input("rms_norm", input, normalized_shape, eps.value_or(0.0));
  check_parameter("rms_norm", "weight", weight, input, normalized_shape);
  return RmsNorm::apply(input.contiguous(), contiguous_or_undefined(weight),
                        normalized_shape.size(), eps.value_or(default_eps(input.dtype())));
}

namespace composite {

Tensor layer_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  const Shape dims = last_dims(normalized_shape.size());
  const Tensor x = detail::in_accumulate_type(input);
  const Tensor centred = x - x.mean(dims, true);
  const Tensor variance = square(centred).mean(dims, true);
  return affine(centred * rsqrt(variance + eps), weight, bias).to(input.dtype());
}

Tensor rms_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  const Shape dims = last_dims(normalized_shape.size());
  const Tensor x = detail::in_accumulate_type(input);
  const Tensor mean_square = square(x).mean(dims, true);
  return affine(x * rsqrt(mean_square + eps.value_or(default_eps(input.dtype()))), weight, {})
      .to(input.dtype());
}

}  // namespace composite

}  // namespace norma
