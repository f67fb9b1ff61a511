#include "norma/ops/batch_norm.h"

#include "norma/ops/column_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduction.h"
#include "norma/ops/view.h"

#include <cmath>

namespace norma {

using detail::ColumnNormCall;
using detail::ColumnOp;

namespace {

/// One call in the terms of this file: where the channels are, and what the batch does to the
/// running statistics.
struct Call {
  const char* name;
  ColumnNormCall column;
  Tensor mask;
  Tensor running_mean, running_var;
  bool training;
};

void check_call(const Call& call, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const std::int64_t channels = call.column.extent[1];
  detail::check_eps(call.name, call.column.eps);
  detail::check_parameter(call.name, "weight", weight, input, {channels});
  detail::check_parameter(call.name, "bias", bias, input, {channels});
  detail::check_running(call.name, call.running_mean, call.running_var, input, channels);
}

/// n / (n - 1), or 1 for fewer than two.
Tensor bessel(const Tensor& count) { return count / clamp(count - 1.0, 1.0); }

Tensor run(const Call& call, const Tensor& input, const Tensor& weight, const Tensor& bias,
           double momentum) {
  check_call(call, input, weight, bias);
  check<ValueError>(call.training || call.running_mean.defined(), call.name,
                    "evaluation needs running_mean and running_var; got empty Tensor handles; "
                    "pass training = true for the statistics of the batch");
  if (!call.training)
    return detail::column_norm_with(input, weight, bias, call.running_mean, call.running_var,
                                    call.column);
  const TensorList out = detail::column_norm(input, weight, bias, call.mask, call.column);
  if (!call.running_mean.defined()) return out[0];
  const NoGradGuard no_grad;
  detail::move_running(call.running_mean, out[1], momentum, out[3]);
  detail::move_running(call.running_var, out[2].detach() * bessel(out[3]), momentum, out[3]);
  return out[0];
}

Call channel_call(const char* name, const Tensor& input, const Tensor& running_mean,
                  const Tensor& running_var, bool training, double eps) {
  detail::check_norm_input(name, input);
  check<ShapeError>(input.dim() >= 2, name, "the input must be [samples, channels, *]; got {}",
                    input.shape());
  return {name,        {.extent = detail::channels_second(input), .eps = eps},
          {},          running_mean,
          running_var, training};
}

Call token_call(const char* name, const Tensor& input, const Tensor& padding_mask,
                const Tensor& running_mean, const Tensor& running_var, bool training, double eps) {
  detail::check_norm_input(name, input);
  check<ShapeError>(input.dim() >= 1, name, "the input must be [..., channels]; got {}",
                    input.shape());
  if (padding_mask.defined()) {
    const Shape tokens(input.shape().begin(), input.shape().end() - 1);
    check<ShapeError>(padding_mask.shape() == tokens, name,
                      "padding_mask must have the shape {} of the tokens; got {}", tokens,
                      padding_mask.shape());
    check<DTypeError>(padding_mask.dtype() == bool_, name,
                      "padding_mask must be bool, true = padding; got {}", padding_mask.dtype());
    check<DeviceError>(padding_mask.device() == input.device(), name,
                       "padding_mask must be on the input's device {}; got {}; move one with "
                       ".to(device)",
                       input.device(), padding_mask.device());
  }
  const Shape extent = detail::channels_last(input);
  return {name,
          {.op = ColumnOp::masked_batch_norm, .extent = extent, .eps = eps},
          padding_mask.defined() ? padding_mask.reshape({extent[0], 1}) : Tensor(),
          running_mean,
          running_var,
          training};
}

}  // namespace

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight, const Tensor& bias, bool training, double momentum,
                  double eps) {
  const Call call = channel_call("batch_norm", input, running_mean, running_var, training, eps);
  const Shape& extent = call.column.extent;
  check<ValueError>(!training || extent[0] * extent[2] != 1, call.name,
                    "training needs more than one value a channel, for its variance; got {}",
                    input.shape());
  return run(call, input, weight, bias, momentum);
}

Tensor masked_batch_norm(const Tensor& input, const Tensor& padding_mask,
                         const Tensor& running_mean, const Tensor& running_var,
                         const Tensor& weight, const Tensor& bias, bool training, double momentum,
                         double eps) {
  return run(token_call("masked_batch_norm", input, padding_mask, running_mean, running_var,
                        training, eps),
             input, weight, bias, momentum);
}

namespace {

Tensor penalty(const Tensor& mean, const Tensor& variance, const Tensor& running_mean,
               const Tensor& running_var, const RegularizedBatchNormOptions& options) {
  const Tensor of_mean = square(running_mean.detach().to(mean.dtype()) - mean).sum();
  const Tensor of_variance = abs(running_var.detach().to(mean.dtype()) - variance).sum();
  return options.mean_penalty * of_mean + options.variance_penalty * of_variance;
}

}  // namespace

RegularizedBatchNorm regularized_batch_norm(const Tensor& input, const Tensor& padding_mask,
                                            const Tensor& running_mean, const Tensor& running_var,
                                            const Tensor& weight, const Tensor& bias, bool training,
                                            const RegularizedBatchNormOptions& options) {
  constexpr const char* name = "regularized_batch_norm";
  Call call =
      token_call(name, input, padding_mask, running_mean, running_var, training, options.eps);
  call.column.op = ColumnOp::regularized_batch_norm;
  call.column.clamp_variance = true;
  check_call(call, input, weight, bias);
  check<ValueError>(running_mean.defined(), name,
                    "running statistics must be given, for the penalty compares with them; got "
                    "an empty Tensor handle");
  if (!training)
    return {
        detail::column_norm_with(input, weight, bias, running_mean, running_var, call.column),
        zeros({}, {.dtype = detail::accumulate_dtype(input.dtype()), .device = input.device()})};
  const TensorList out = detail::column_norm(input, weight, bias, call.mask, call.column);
  // A copy of the running statistics as they are now stands in the penalty.
  const Tensor loss = penalty(out[1], out[2], running_mean.clone(), running_var.clone(), options);
  detail::move_running(running_mean, out[1], options.momentum, out[3]);
  detail::move_running(running_var, out[2], options.momentum, out[3]);
  return {out[0], loss};
}

Moments channel_moments(const Tensor& input, const Tensor& padding_mask) {
  const NoGradGuard no_grad;
  const Call call = token_call("channel_moments", input, padding_mask, {}, {}, true, 0.0);
  const TensorOptions options{.dtype = detail::accumulate_dtype(input.dtype()),
                              .device = input.device()};
  const std::int64_t channels = call.column.extent[1];
  Moments moments{empty({channels}, options), empty({channels}, options), empty({1}, options)};
  backend(input).column_statistics(detail::as_matrix(input.contiguous(), call.column.extent),
                                   detail::contiguous_or_undefined(call.mask), moments.mean,
                                   moments.variance, moments.count);
  return moments;
}

Moments merge_moments(const std::vector<Moments>& parts) {
  check<ValueError>(!parts.empty(), "merge_moments", "there must be a part; got none");
  const NoGradGuard no_grad;
  Tensor mean = parts[0].mean, count = parts[0].count;
  Tensor squares = parts[0].variance * count;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Moments& part = parts[i];
    const Tensor total = count + part.count;
    const Tensor share = part.count / clamp(total, 1.0);
    const Tensor delta = part.mean - mean;
    mean = mean + delta * share;
    squares = squares + part.variance * part.count + square(delta) * count * share;
    count = total;
  }
  return {mean, squares / clamp(count, 1.0), count};
}

namespace composite {

namespace {

/// [channels] beside a tensor seen as [outer, channels, inner].
Tensor by_channel(const Tensor& values) {
  return detail::in_accumulate_type(values).reshape({1, values.numel(), 1});
}

struct Batch {
  Tensor mean, variance;
};

Batch statistics_of(const Tensor& x, const Call& call) {
  const Tensor kept =
      call.mask.defined()
          ? logical_not(call.mask.reshape({x.size(0), 1, x.size(2)})).to(x.dtype())
          : ones({x.size(0), 1, x.size(2)}, {.dtype = x.dtype(), .device = x.device()});
  const Tensor count = clamp(kept.sum(), 1.0);
  const Tensor mean = (x * kept).sum({0, 2}) / count;
  return {mean, (square(x - by_channel(mean)) * kept).sum({0, 2}) / count};
}

Tensor apply(const Tensor& x, const Tensor& mean, const Tensor& divisor, const Tensor& weight,
             const Tensor& bias, const Tensor& like) {
  Tensor h = (x - by_channel(mean)) / by_channel(divisor);
  if (weight.defined()) h = h * by_channel(weight);
  if (bias.defined()) h = h + by_channel(bias);
  return h.reshape(like.shape()).to(like.dtype());
}

Tensor normalized(const Call& call, const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const Tensor x = detail::in_accumulate_type(input).reshape(call.column.extent);
  const Batch used = call.training
                         ? statistics_of(x, call)
                         : Batch{call.running_mean.to(x.dtype()), call.running_var.to(x.dtype())};
  return apply(x, used.mean, sqrt(used.variance + call.column.eps), weight, bias, input);
}

}  // namespace

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight, const Tensor& bias, bool training, double, double eps) {
  return normalized(channel_call("batch_norm", input, running_mean, running_var, training, eps),
                    input, weight, bias);
}

Tensor masked_batch_norm(const Tensor& input, const Tensor& padding_mask,
                         const Tensor& running_mean, const Tensor& running_var,
                         const Tensor& weight, const Tensor& bias, bool training, double,
                         double eps) {
  return normalized(token_call("masked_batch_norm", input, padding_mask, running_mean, running_var,
                               training, eps),
                    input, weight, bias);
}

RegularizedBatchNorm regularized_batch_norm(const Tensor& input, const Tensor& padding_mask,
                                            const Tensor& running_mean, const Tensor& running_var,
                                            const Tensor& weight, const Tensor& bias, bool training,
                                            const RegularizedBatchNormOptions& options) {
  const Call call = token_call("regularized_batch_norm", input, padding_mask, running_mean,
                               running_var, training, options.eps);
  const Tensor x = detail::in_accumulate_type(input).reshape(call.column.extent);
  const Batch used = training ? statistics_of(x, call)
                              : Batch{running_mean.to(x.dtype()), running_var.to(x.dtype())};
  const Tensor out =
      apply(x, used.mean, sqrt(clamp(used.variance, options.eps)), weight, bias, input);
  return {out, training ? penalty(used.mean, used.variance, running_mean, running_var, options)
                        : zeros({}, {.dtype = x.dtype(), .device = x.device()})};
}

}  // namespace composite

}  // namespace norma
