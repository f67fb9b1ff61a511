#include "norma/ops/norm.h"

#include "norma/ops/elementwise.h"
#include "norma/ops/norm_checks.h"
#include "norma/ops/reduction.h"
#include "norma/ops/view.h"

#include <cmath>

namespace norma {

using detail::in_accumulate_type;
using detail::RowLayout;
using detail::RowNorm;

namespace {

Shape last_dimension(const char* name, const Tensor& input) {
  detail::check_norm_input(name, input);
  check<ShapeError>(input.dim() >= 1, name, "the input must have a dimension; got {}",
                    input.shape());
  return {input.size(-1)};
}

template <class Rule>
Tensor run(const Tensor& input, const Tensor& weight, const Tensor& bias, const Rule& rule) {
  return RowNorm<Rule>::apply(input.contiguous(), detail::contiguous_or_undefined(weight),
                              detail::contiguous_or_undefined(bias), rule);
}

// One rule a norm: its arguments besides the tensors, and its definition.

struct LayerNormRule {
  static constexpr const char* name = "layer_norm";
  RowNormParams params;
  RowLayout layout;
  Shape normalized_shape;
  NormOptions options;
  Tensor composite(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    return composite::layer_norm(x, normalized_shape, weight, bias, options);
  }
};

struct RmsNormRule {
  static constexpr const char* name = "rms_norm";
  RowNormParams params;
  RowLayout layout;
  Shape normalized_shape;
  NormOptions options;
  Tensor composite(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    return composite::rms_norm(x, normalized_shape, weight, bias, options);
  }
};

struct PartialRmsNormRule {
  static constexpr const char* name = "p_rms_norm";
  RowNormParams params;
  RowLayout layout;
  double p;
  NormOptions options;
  Tensor composite(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    return composite::p_rms_norm(x, p, weight, bias, options);
  }
};

struct CompressedRmsNormRule {
  static constexpr const char* name = "crms_norm";
  RowNormParams params;
  RowLayout layout;
  Tensor composite(const Tensor& x, const Tensor& weight, const Tensor&) const {
    return composite::crms_norm(x, weight, params.eps);
  }
};

struct NormalizeRule {
  static constexpr const char* name = "normalize";
  RowNormParams params;
  RowLayout layout;
  Tensor composite(const Tensor& x, const Tensor&, const Tensor&) const {
    return composite::normalize(x, -1, params.eps, params.eps_rule);
  }
};

struct ScaleNormRule {
  static constexpr const char* name = "scale_norm";
  RowNormParams params;
  RowLayout layout;
  Tensor composite(const Tensor& x, const Tensor& g, const Tensor&) const {
    return composite::scale_norm(x, g, params.eps);
  }
};

struct SimpleRmsNormRule {
  static constexpr const char* name = "simple_rms_norm";
  RowNormParams params;
  RowLayout layout;
  bool unit_offset;
  Tensor composite(const Tensor& x, const Tensor& weight, const Tensor&) const {
    return composite::simple_rms_norm(x, weight, unit_offset, params.eps);
  }
};

/// Of the modulated norms, with scale as weight and shift as bias.
struct AdaLayerNormRule {
  static constexpr const char* name = "ada_layer_norm";
  RowNormParams params;
  RowLayout layout;
  Tensor composite(const Tensor& x, const Tensor& scale, const Tensor& shift) const {
    return composite::ada_layer_norm(x, scale, shift, params.eps);
  }
};

struct ModulatedRmsNormRule {
  static constexpr const char* name = "modulated_rms_norm";
  RowNormParams params;
  RowLayout layout;
  NormOptions options;
  /// `gain` is scale beside an offset of 1, or all of it beside 0.
  Tensor composite(const Tensor& x, const Tensor& gain, const Tensor& shift) const;
};

struct AdaNormRule {
  static constexpr const char* name = "ada_norm";
  RowNormParams params;
  RowLayout layout;
  Shape normalized_shape;
  Tensor composite(const Tensor& x, const Tensor&, const Tensor&) const {
    return composite::ada_norm(x, normalized_shape, params.scale, params.detached_slope,
                               params.eps);
  }
};

/// The layout of weights [samples, width] for an input [samples, …, width].
RowLayout sample_layout(const char* name, const Tensor& input, const Tensor& scale,
                        const Tensor& shift, RowNormParams& params) {
  const std::int64_t width = input.size(-1);
  check<ValueError>(scale.defined(), name, "scale must be defined; got an empty Tensor handle");
  check<ShapeError>(input.dim() >= 2, name,
                    "the input must be [samples, …, width]; got {}; add a dimension with "
                    ".unsqueeze(0)",
                    input.shape());
  const Shape expected{input.size(0), width};
  detail::check_parameter(name, "scale", scale, input, expected);
  detail::check_parameter(name, "shift", shift, input, expected);
  std::int64_t rows_per_sample = 1;
  for (std::int64_t i = 1; i < input.dim() - 1; ++i) rows_per_sample *= input.size(i);
  params.weight_repeat = std::max<std::int64_t>(rows_per_sample, 1);
  params.weight_offset = 1.0;
  return {{input.size(0) * rows_per_sample, width}, expected};
}

}  // namespace

Tensor layer_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  return layer_norm(input, normalized_shape, weight, bias, NormOptions{.eps = eps});
}

Tensor layer_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                  const Tensor& bias, const NormOptions& options) {
  constexpr const char* name = "layer_norm";
  const double eps = options.eps.value_or(1e-5);
  detail::check_norm_input(name, input);
  detail::check_normalized(name, input, normalized_shape);
  detail::check_eps(name, eps);
  RowNormParams p = detail::row_norm_params(true, normalized_shape.numel(), options, eps);
  const RowLayout layout = detail::gain_layout(name, input, normalized_shape, weight, bias, p);
  return run(input, weight, bias, LayerNormRule{p, layout, normalized_shape, options});
}

Tensor rms_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  return rms_norm(input, normalized_shape, weight, {}, NormOptions{.eps = eps});
}

Tensor rms_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                const Tensor& bias, const NormOptions& options) {
  constexpr const char* name = "rms_norm";
  detail::check_norm_input(name, input);
  const double eps = options.eps.value_or(detail::default_eps(input.dtype()));
  detail::check_normalized(name, input, normalized_shape);
  detail::check_eps(name, eps);
  RowNormParams p = detail::row_norm_params(false, normalized_shape.numel(), options, eps);
  const RowLayout layout = detail::gain_layout(name, input, normalized_shape, weight, bias, p);
  return run(input, weight, bias, RmsNormRule{p, layout, normalized_shape, options});
}

namespace {
/// Elements that enter the mean square of pRMSNorm.
std::int64_t partial_width(std::int64_t width, double p) {
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(width) * p),
                                  std::min<std::int64_t>(width, 1), width);
}
}  // namespace

Tensor p_rms_norm(const Tensor& input, double p, const Tensor& weight, const Tensor& bias,
                  const NormOptions& options) {
  constexpr const char* name = "p_rms_norm";
  const Shape normalized = last_dimension(name, input);
  const double eps = options.eps.value_or(detail::default_eps(input.dtype()));
  check<ValueError>(p > 0.0 && p <= 1.0, name, "p must be in (0, 1]; got {}", p);
  detail::check_eps(name, eps);
  RowNormParams params = detail::row_norm_params(false, normalized[0], options, eps);
  params.statistic_width = partial_width(normalized[0], p);
  params.divisor = static_cast<double>(params.statistic_width);
  const RowLayout layout = detail::gain_layout(name, input, normalized, weight, bias, params);
  return run(input, weight, bias, PartialRmsNormRule{params, layout, p, options});
}

Tensor crms_norm(const Tensor& input, const Tensor& weight, double eps) {
  constexpr const char* name = "crms_norm";
  const Shape normalized = last_dimension(name, input);
  detail::check_eps(name, eps);
  RowNormParams p = detail::row_norm_params(false, normalized[0], {}, eps);
  p.compressed = true;
  p.divisor = static_cast<double>(normalized[0] + 1);
  const RowLayout layout = detail::gain_layout(name, input, normalized, weight, {}, p);
  return run(input, weight, {}, CompressedRmsNormRule{p, layout});
}

Tensor normalize(const Tensor& input, std::int64_t dim, double eps, EpsRule eps_rule) {
  constexpr const char* name = "normalize";
  last_dimension(name, input);
  detail::check_eps(name, eps);
  dim = normalize_dim(dim, input.dim(), name);
  const std::int64_t last = input.dim() - 1;
  if (dim != last)
    return normalize(input.transpose(dim, last), -1, eps, eps_rule)
        .transpose(dim, last)
        .contiguous();
  RowNormParams p = detail::row_norm_params(false, input.size(-1), {.eps_rule = eps_rule}, eps);
  p.divisor = 1.0;
  const RowLayout layout = detail::gain_layout(name, input, {input.size(-1)}, {}, {}, p);
  return run(input, {}, {}, NormalizeRule{p, layout});
}

Tensor scale_norm(const Tensor& input, const Tensor& g, double eps) {
  constexpr const char* name = "scale_norm";
  const Shape normalized = last_dimension(name, input);
  detail::check_eps(name, eps);
  check<ValueError>(g.defined(), name, "g must be defined; got an empty Tensor handle");
  detail::check_parameter(name, "g", g, input, {1});
  RowNormParams p =
      detail::row_norm_params(false, normalized[0], {.eps_rule = EpsRule::floor}, eps);
  p.divisor = 1.0;
  RowLayout layout = detail::gain_layout(name, input, normalized, {}, {}, p);
  layout.weight = {1, 1};
  return run(input, g, {}, ScaleNormRule{p, layout});
}

Tensor simple_rms_norm(const Tensor& input, const Tensor& weight, bool unit_offset, double eps) {
  constexpr const char* name = "simple_rms_norm";
  const Shape normalized = last_dimension(name, input);
  detail::check_eps(name, eps);
  RowNormParams p =
      detail::row_norm_params(false, normalized[0],
                              {.eps_rule = EpsRule::floor,
                               .unit_offset = unit_offset,
                               .scale = std::sqrt(static_cast<double>(normalized[0]))},
                              eps);
  p.divisor = 1.0;
  const RowLayout layout = detail::gain_layout(name, input, normalized, weight, {}, p);
  return run(input, weight, {}, SimpleRmsNormRule{p, layout, unit_offset});
}

Tensor ada_layer_norm(const Tensor& input, const Tensor& scale, const Tensor& shift, double eps) {
  constexpr const char* name = "ada_layer_norm";
  const Shape normalized = last_dimension(name, input);
  detail::check_eps(name, eps);
  RowNormParams p = detail::row_norm_params(true, normalized[0], {}, eps);
  const RowLayout layout = sample_layout(name, input, scale, shift, p);
  return run(input, scale, shift, AdaLayerNormRule{p, layout});
}

Tensor modulated_rms_norm(const Tensor& input, const Tensor& weight, const Tensor& scale,
                          const Tensor& shift, const NormOptions& options) {
  constexpr const char* name = "modulated_rms_norm";
  const Shape normalized = last_dimension(name, input);
  const double eps = options.eps.value_or(detail::default_eps(input.dtype()));
  detail::check_eps(name, eps);
  detail::check_parameter(name, "weight", weight, input, normalized);
  RowNormParams p =
      detail::row_norm_params(false, normalized[0], {.eps_rule = options.eps_rule}, eps);
  const RowLayout layout = sample_layout(name, input, scale, shift, p);
  const NormOptions rest{.eps = eps, .eps_rule = options.eps_rule};
  if (!weight.defined()) return run(input, scale, shift, ModulatedRmsNormRule{p, layout, rest});
  // The weight is folded into the few rows of scale. Of 16 bits their product would keep too few,
  // and so would the parts of dweight, one of each sample: the kernel runs in float32.
  const Tensor w = in_accumulate_type(weight);
  const Tensor gain = (options.unit_offset ? w + 1.0 : w) * (in_accumulate_type(scale) + 1.0);
  p.weight_offset = 0.0;
  return run(in_accumulate_type(input), gain, in_accumulate_type(shift),
             ModulatedRmsNormRule{p, layout, rest})
      .to(input.dtype());
}

Tensor ada_norm(const Tensor& input, const Shape& normalized_shape, double c, double k,
                double eps) {
  constexpr const char* name = "ada_norm";
  detail::check_norm_input(name, input);
  detail::check_normalized(name, input, normalized_shape);
  detail::check_eps(name, eps);
  RowNormParams p = detail::row_norm_params(true, normalized_shape.numel(), {.scale = c}, eps);
  p.detached_slope = k;
  const RowLayout layout = detail::gain_layout(name, input, normalized_shape, {}, {}, p);
  return run(input, {}, {}, AdaNormRule{p, layout, normalized_shape});
}

namespace composite {

namespace {

/// x over its divisor, where `root` is sqrt(mean_square) in a form whose gradient at 0 is 0.
Tensor divided(const Tensor& x, const Tensor& mean_square, const Tensor& root, EpsRule rule,
               double eps) {
  switch (rule) {
    case EpsRule::outside:
      return x / (root + eps);
    case EpsRule::floor:
      return x / clamp(root, eps);
    case EpsRule::inside:
      break;
  }
  return x * rsqrt(mean_square + eps);
}

/// d over sqrt of its mean square over `dims`.
Tensor over_root_mean_square(const Tensor& d, const Shape& dims, std::int64_t width,
                             const NormOptions& options, double eps) {
  const Tensor mean_square = square(d).mean(dims, true);
  Tensor root;
  if (options.eps_rule != EpsRule::inside)
    root = vector_norm(d, dims, true) / std::sqrt(static_cast<double>(width));
  return divided(d, mean_square, root, options.eps_rule, eps);
}

Tensor affine(Tensor h, const Tensor& weight, const Tensor& bias, const NormOptions& options,
              DType dtype) {
  if (options.cast_before_weight) h = in_accumulate_type(h.to(dtype));
  if (weight.defined()) {
    const Tensor w = in_accumulate_type(weight);
    h = h * (options.unit_offset ? w + 1.0 : w);
  }
  if (bias.defined()) h = h + in_accumulate_type(bias);
  if (options.scale != 1.0) h = h * options.scale;
  return h.to(dtype);
}

/// [samples, width] beside [samples, …, width].
Tensor beside(const Tensor& modulation, const Tensor& x) {
  Shape shape = Shape::filled(x.dim(), 1);
  shape[0] = x.size(0);
  shape.back() = x.size(-1);
  return in_accumulate_type(modulation).reshape(shape);
}

}  // namespace

Tensor layer_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  return composite::layer_norm(input, normalized_shape, weight, bias, NormOptions{.eps = eps});
}

Tensor layer_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                  const Tensor& bias, const NormOptions& options) {
  const Shape dims = detail::last_dims(normalized_shape.size());
  const Tensor x = in_accumulate_type(input);
  const Tensor h = over_root_mean_square(x - x.mean(dims, true), dims, normalized_shape.numel(),
                                         options, options.eps.value_or(1e-5));
  return affine(h, weight, bias, options, input.dtype());
}

Tensor rms_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  return composite::rms_norm(input, normalized_shape, weight, {}, NormOptions{.eps = eps});
}

Tensor rms_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight,
                const Tensor& bias, const NormOptions& options) {
  const Tensor h = over_root_mean_square(
      in_accumulate_type(input), detail::last_dims(normalized_shape.size()),
      normalized_shape.numel(), options, options.eps.value_or(detail::default_eps(input.dtype())));
  return affine(h, weight, bias, options, input.dtype());
}

Tensor p_rms_norm(const Tensor& input, double p, const Tensor& weight, const Tensor& bias,
                  const NormOptions& options) {
  const std::int64_t k = partial_width(input.size(-1), p);
  const Tensor x = in_accumulate_type(input);
  const Tensor part = x.narrow(-1, 0, k);
  Tensor root;
  if (options.eps_rule != EpsRule::inside)
    root = vector_norm(part, {-1}, true) / std::sqrt(static_cast<double>(k));
  const Tensor h = divided(x, square(part).mean({-1}, true), root, options.eps_rule,
                           options.eps.value_or(detail::default_eps(input.dtype())));
  return affine(h, weight, bias, options, input.dtype());
}

Tensor crms_norm(const Tensor& input, const Tensor& weight, double eps) {
  const Tensor x = in_accumulate_type(input);
  const Tensor squares = square(x).sum({-1}, true) + square(x.sum({-1}, true));
  const Tensor h = x * rsqrt(squares / static_cast<double>(x.size(-1) + 1) + eps);
  return affine(h, weight, {}, {}, input.dtype());
}

Tensor normalize(const Tensor& input, std::int64_t dim, double eps, EpsRule eps_rule) {
  const Tensor x = in_accumulate_type(input);
  return divided(x, square(x).sum({dim}, true), vector_norm(x, {dim}, true), eps_rule, eps)
      .to(input.dtype());
}

Tensor scale_norm(const Tensor& input, const Tensor& g, double eps) {
  const Tensor x = in_accumulate_type(input);
  return (x / clamp(vector_norm(x, {-1}, true), eps) * in_accumulate_type(g)).to(input.dtype());
}

Tensor simple_rms_norm(const Tensor& input, const Tensor& weight, bool unit_offset, double eps) {
  const Tensor x = in_accumulate_type(input);
  return affine(x / clamp(vector_norm(x, {-1}, true), eps), weight, {},
                {.unit_offset = unit_offset, .scale = std::sqrt(static_cast<double>(x.size(-1)))},
                input.dtype());
}

Tensor ada_layer_norm(const Tensor& input, const Tensor& scale, const Tensor& shift, double eps) {
  Tensor y = composite::layer_norm(in_accumulate_type(input), {input.size(-1)}, {}, {}, eps) *
             (beside(scale, input) + 1.0);
  if (shift.defined()) y = y + beside(shift, input);
  return y.to(input.dtype());
}

Tensor modulated_rms_norm(const Tensor& input, const Tensor& weight, const Tensor& scale,
                          const Tensor& shift, const NormOptions& options) {
  const Tensor x = in_accumulate_type(input);
  Tensor y = composite::rms_norm(x, {x.size(-1)}, in_accumulate_type(weight), {}, options) *
             (beside(scale, input) + 1.0);
  if (shift.defined()) y = y + beside(shift, input);
  return y.to(input.dtype());
}

Tensor ada_norm(const Tensor& input, const Shape& normalized_shape, double c, double k,
                double eps) {
  const Tensor h = composite::layer_norm(in_accumulate_type(input), normalized_shape, {}, {}, eps);
  return ((c * (1.0 - k * h.detach())) * h).to(input.dtype());
}

}  // namespace composite

Tensor ModulatedRmsNormRule::composite(const Tensor& x, const Tensor& gain,
                                       const Tensor& shift) const {
  if (params.weight_offset != 0.0)
    return composite::modulated_rms_norm(x, {}, gain, shift, options);
  const Tensor y =
      composite::rms_norm(x, {x.size(-1)}, {}, {}, options) * composite::beside(gain, x);
  return shift.defined() ? y + composite::beside(shift, x) : y;
}

}  // namespace norma
