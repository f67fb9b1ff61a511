#include "norma/ops/group_norm.h"

#include "norma/ops/column_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduction.h"
#include "norma/ops/view.h"

namespace norma {

using detail::in_accumulate_type;
using detail::RowLayout;

namespace {

/// Of group_norm, and of instance_norm: one channel a group.
template <bool instance>
struct GroupNormRule {
  static constexpr const char* name = instance ? "instance_norm" : "group_norm";
  RowNormParams params;
  RowLayout layout;
  std::int64_t num_groups;
  Tensor composite(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    return composite::group_norm(x, num_groups, weight, bias, params.eps);
  }
};

/// Each group of channels of one sample is a row; the rows of weight are the groups.
template <bool instance>
Tensor run(const Tensor& input, std::int64_t num_groups, const Tensor& weight, const Tensor& bias,
           double eps) {
  using Rule = GroupNormRule<instance>;
  constexpr const char* name = Rule::name;
  detail::check_norm_input(name, input);
  detail::check_eps(name, eps);
  check<ShapeError>(input.dim() >= 2, name, "the input must be [samples, channels, *]; got {}",
                    input.shape());
  const std::int64_t channels = input.size(1);
  check<ShapeError>(num_groups > 0 && channels % num_groups == 0, name,
                    "num_groups must divide the channels of the input {}; got {}", input.shape(),
                    num_groups);
  detail::check_parameter(name, "weight", weight, input, {channels});
  detail::check_parameter(name, "bias", bias, input, {channels});
  std::int64_t width = channels / num_groups;
  for (std::int64_t i = 2; i < input.dim(); ++i) width *= input.size(i);
  const RowNormParams p = detail::row_norm_params(true, width, {}, eps);
  const RowLayout layout{{input.size(0) * num_groups, width}, {num_groups, channels / num_groups}};
  return detail::RowNorm<Rule>::apply(input.contiguous(), detail::contiguous_or_undefined(weight),
                                      detail::contiguous_or_undefined(bias),
                                      Rule{p, layout, num_groups});
}

/// Positions of a channel of one sample.
std::int64_t positions(const Tensor& input) {
  std::int64_t count = 1;
  for (std::int64_t i = 2; i < input.dim(); ++i) count *= input.size(i);
  return count;
}

/// [channels] beside [samples, channels, *].
Tensor by_channel(const Tensor& values, const Tensor& input) {
  Shape shape = Shape::filled(input.dim(), 1);
  shape[1] = input.size(1);
  return values.reshape(shape);
}

Tensor affine(Tensor h, const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) h = h * by_channel(in_accumulate_type(weight), h);
  if (bias.defined()) h = h + by_channel(in_accumulate_type(bias), h);
  return h;
}

/// Moves running statistics towards those of `input`, averaged over the samples.
void track(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
           double momentum) {
  const NoGradGuard no_grad;
  const Tensor x =
      in_accumulate_type(input.detach()).reshape({input.size(0), input.size(1), positions(input)});
  const Tensor count = full({1}, static_cast<double>(x.size(0)), {.device = x.device()});
  detail::move_running(running_mean, x.mean({-1}).mean({0}), momentum, count);
  detail::move_running(running_var, norma::var(x, {-1}, 1).mean({0}), momentum, count);
}

}  // namespace

Tensor group_norm(const Tensor& input, std::int64_t num_groups, const Tensor& weight,
                  const Tensor& bias, double eps) {
  return run<false>(input, num_groups, weight, bias, eps);
}

Tensor instance_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                     const Tensor& weight, const Tensor& bias, bool use_input_stats,
                     double momentum, double eps) {
  constexpr const char* name = "instance_norm";
  detail::check_norm_input(name, input);
  check<ShapeError>(input.dim() >= 3, name,
                    "the input must be [samples, channels, positions…]; got {}", input.shape());
  detail::check_running(name, running_mean, running_var, input, input.size(1));
  if (!use_input_stats) {
    check<ValueError>(running_mean.defined(), name,
                      "use_input_stats must be true without running statistics; got false");
    detail::check_parameter(name, "weight", weight, input, {input.size(1)});
    detail::check_parameter(name, "bias", bias, input, {input.size(1)});
    return detail::column_norm_with(input, weight, bias, running_mean, running_var,
                                    {.op = detail::ColumnOp::instance_norm,
                                     .extent = detail::channels_second(input),
                                     .eps = eps});
  }
  check<ValueError>(positions(input) != 1, name,
                    "a channel must have more than one position, for its variance to be that of "
                    "more than one value; got {}",
                    input.shape());
  const Tensor out = run<true>(input, input.size(1), weight, bias, eps);
  if (running_mean.defined()) track(input, running_mean, running_var, momentum);
  return out;
}

namespace composite {

Tensor group_norm(const Tensor& input, std::int64_t num_groups, const Tensor& weight,
                  const Tensor& bias, double eps) {
  const std::int64_t width = input.size(1) / num_groups * positions(input);
  const Tensor x = in_accumulate_type(input).reshape({input.size(0), num_groups, width});
  const Tensor centred = x - x.mean({-1}, true);
  const Tensor h = centred * rsqrt(square(centred).mean({-1}, true) + eps);
  return affine(h.reshape(input.shape()), weight, bias).to(input.dtype());
}

Tensor instance_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                     const Tensor& weight, const Tensor& bias, bool use_input_stats, double,
                     double eps) {
  if (use_input_stats) return composite::group_norm(input, input.size(1), weight, bias, eps);
  const Tensor x = in_accumulate_type(input);
  const Tensor centred = x - by_channel(running_mean.to(x.dtype()), x);
  const Tensor h = centred * by_channel(rsqrt(running_var.to(x.dtype()) + eps), x);
  return affine(h, weight, bias).to(input.dtype());
}

}  // namespace composite

}  // namespace norma
