#include "norma/ops/norm_checks.h"

#include <limits>

namespace norma::detail {

double default_eps(DType dtype) {
  return dtype == float64 ? std::numeric_limits<double>::epsilon()
                          : static_cast<double>(std::numeric_limits<float>::epsilon());
}

Shape last_dims(std::int64_t count) {
  Shape dims;
  for (std::int64_t i = count; i > 0; --i) dims.push_back(-i);
  return dims;
}

Tensor contiguous_or_undefined(const Tensor& tensor) {
  return tensor.defined() ? tensor.contiguous() : tensor;
}

RowNormParams row_norm_params(bool centred, std::int64_t width, const NormOptions& options,
                              double eps) {
  RowNormParams p;
  p.centred = centred;
  p.statistic_width = width;
  p.divisor = static_cast<double>(width);
  p.eps_rule = options.eps_rule;
  p.eps = eps;
  p.weight_offset = options.unit_offset ? 1.0 : 0.0;
  p.round_normalized = options.cast_before_weight;
  p.scale = options.scale;
  return p;
}

void check_norm_input(const char* name, const Tensor& input) {
  check<ValueError>(input.defined(), name, "the input must be defined; got an empty Tensor handle");
  check<DTypeError>(input.is_floating_point(), name,
                    "needs a floating-point input; got {}; convert with .to(float32)",
                    input.dtype());
}

void check_eps(const char* name, double eps) {
  check<ValueError>(eps >= 0.0, name, "eps must not be negative; got {}", eps);
}

void check_normalized(const char* name, const Tensor& input, const Shape& normalized_shape) {
  const std::int64_t dims = normalized_shape.size();
  check<ShapeError>(dims >= 1, name, "normalized_shape must have a dimension; got {}",
                    normalized_shape);
  check<ShapeError>(input.dim() >= dims &&
                        Shape(input.shape().end() - dims, input.shape().end()) == normalized_shape,
                    name, "the input's last dimensions must be normalized_shape {}; got {}",
                    normalized_shape, input.shape());
}

void check_like_input(const char* name, const char* what, const Tensor& parameter,
                      const Tensor& input) {
  check<DTypeError>(parameter.dtype() == input.dtype(), name,
                    "{} must have the input's dtype {}; got {}; convert one with .to(dtype)", what,
                    input.dtype(), parameter.dtype());
  check<DeviceError>(parameter.device() == input.device(), name,
                     "{} must be on the input's device {}; got {}; move one with .to(device)", what,
                     input.device(), parameter.device());
}

void check_parameter(const char* name, const char* what, const Tensor& parameter,
                     const Tensor& input, const Shape& shape) {
  if (!parameter.defined()) return;
  check<ShapeError>(parameter.shape() == shape, name, "{} must have the shape {}; got {}", what,
                    shape, parameter.shape());
  check_like_input(name, what, parameter, input);
}

namespace {

struct Leading {
  std::int64_t weight_rows = 1;
  std::int64_t repeat = 1;
};

/// The dimensions of `parameter` before the normalized ones: sizes of the input, then ones.
Leading leading_dimensions(const char* name, const char* what, const Tensor& parameter,
                           const Tensor& input, const Shape& normalized_shape) {
  const Shape& shape = parameter.shape();
  const std::int64_t dims = normalized_shape.size();
  const std::int64_t leading = shape.size() - dims;
  bool fits = leading >= 0 && shape.size() <= input.dim() &&
              Shape(shape.end() - dims, shape.end()) == normalized_shape;
  Leading result;
  const std::int64_t skipped = input.dim() - shape.size();
  bool ones = false;
  for (std::int64_t i = 0; fits && i < leading; ++i) {
    const std::int64_t size = input.shape()[skipped + i];
    ones = ones || (i > 0 && shape[i] == 1 && size != 1);
    fits = shape[i] == (ones ? 1 : size);
    (ones ? result.repeat : result.weight_rows) *= size;
  }
  check<ShapeError>(
      fits, name,
      "{} must have the shape normalized_shape {}, or dimensions of the input {} before it; got {}",
      what, normalized_shape, input.shape(), shape);
  check_like_input(name, what, parameter, input);
  return result;
}

}  // namespace

RowLayout gain_layout(const char* name, const Tensor& input, const Shape& normalized_shape,
                      const Tensor& weight, const Tensor& bias, RowNormParams& params) {
  const std::int64_t width = normalized_shape.numel();
  std::int64_t rows = 1;
  for (std::int64_t i = 0; i < input.dim() - normalized_shape.size(); ++i) rows *= input.shape()[i];
  Leading leading;
  if (weight.defined())
    leading = leading_dimensions(name, "weight", weight, input, normalized_shape);
  if (bias.defined()) {
    const Leading of_bias = leading_dimensions(name, "bias", bias, input, normalized_shape);
    check<ShapeError>(!weight.defined() || weight.shape() == bias.shape(), name,
                      "weight and bias must have one shape; got {} and {}",
                      weight.defined() ? weight.shape() : Shape(), bias.shape());
    leading = of_bias;
  }
  params.weight_repeat = std::max<std::int64_t>(leading.repeat, 1);
  return {{rows, width}, {leading.weight_rows, width}};
}

}  // namespace norma::detail
