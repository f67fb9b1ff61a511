#include "norma/ops/column_norm.h"

#include "norma/ops/elementwise.h"
#include "norma/ops/reduction.h"
#include "norma/ops/view.h"

#include <algorithm>

namespace norma::detail {

namespace {

Tensor channel_vector(const Tensor& x, std::int64_t size) {
  return empty({size}, {.dtype = accumulate_dtype(x.dtype()), .device = x.device()});
}

/// weight in the accumulate type; ones without one.
Tensor gain_of(const Tensor& weight, const Tensor& x, std::int64_t channels) {
  if (weight.defined()) return in_accumulate_type(weight.detach());
  return ones({channels}, {.dtype = accumulate_dtype(x.dtype()), .device = x.device()});
}
Tensor shift_of(const Tensor& bias, const Tensor& x, std::int64_t channels) {
  if (bias.defined()) return in_accumulate_type(bias.detach());
  return zeros({channels}, {.dtype = accumulate_dtype(x.dtype()), .device = x.device()});
}

Tensor reciprocal_deviation(const Tensor& variance, const ColumnNormCall& call) {
  return rsqrt(call.clamp_variance ? clamp(variance, call.eps) : variance + call.eps);
}

/// [channels] beside [outer, channels, inner].
Tensor by_channel(const Tensor& values) { return values.reshape({1, values.numel(), 1}); }

Tensor affine_of(const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                 const Tensor& bias) {
  Tensor h = (x - by_channel(mean)) * by_channel(rstd);
  if (weight.defined()) h = h * by_channel(in_accumulate_type(weight));
  if (bias.defined()) h = h + by_channel(in_accumulate_type(bias));
  return h;
}

/// {out, mean, variance} in elementary operations.
TensorList definition(const Tensor& input, const Tensor& weight, const Tensor& bias,
                      const Tensor& mask, const ColumnNormCall& call) {
  const Tensor x = in_accumulate_type(input).reshape(call.extent);
  Tensor mean, variance;
  if (mask.defined()) {
    const Tensor out = mask.reshape({call.extent[0], 1, call.extent[2]});
    const Tensor count = clamp(logical_not(mask).to(x.dtype()).sum(), 1.0);
    mean = masked_fill(x, out, 0.0).sum({0, 2}) / count;
    variance = masked_fill(square(x - by_channel(mean)), out, 0.0).sum({0, 2}) / count;
  } else {
    const auto count =
        static_cast<double>(std::max<std::int64_t>(call.extent[0] * call.extent[2], 1));
    mean = x.sum({0, 2}) / count;
    variance = square(x - by_channel(mean)).sum({0, 2}) / count;
  }
  const Tensor out = affine_of(x, mean, reciprocal_deviation(variance, call), weight, bias);
  return {out.reshape(input.shape()).to(input.dtype()), mean, variance};
}

constexpr const char* name_of(ColumnOp op) {
  switch (op) {
    case ColumnOp::batch_norm:
      return "batch_norm";
    case ColumnOp::masked_batch_norm:
      return "masked_batch_norm";
    case ColumnOp::regularized_batch_norm:
      return "regularized_batch_norm";
    case ColumnOp::instance_norm:
      break;
  }
  return "instance_norm";
}

/// Calls use.operator()<op>().
template <class Use>
auto with_name(ColumnOp op, const Use& use) {
  switch (op) {
    case ColumnOp::batch_norm:
      return use.template operator()<ColumnOp::batch_norm>();
    case ColumnOp::masked_batch_norm:
      return use.template operator()<ColumnOp::masked_batch_norm>();
    case ColumnOp::regularized_batch_norm:
      return use.template operator()<ColumnOp::regularized_batch_norm>();
    case ColumnOp::instance_norm:
      break;
  }
  return use.template operator()<ColumnOp::instance_norm>();
}

struct BatchStatistics {
  static TensorList forward(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& mask, const ColumnNormCall& call) {
    const std::int64_t channels = call.extent[1];
    const Tensor out = empty_like(x);
    const Tensor mean = channel_vector(x, channels), variance = channel_vector(x, channels);
    const Tensor count = channel_vector(x, 1);
    const Tensor view = as_matrix(x, call.extent);
    backend(x).column_statistics(view, mask, mean, variance, count);
    backend(x).column_affine(view, Tensor(), mean, Tensor(), Tensor(),
                             reciprocal_deviation(variance, call) * gain_of(weight, x, channels),
                             shift_of(bias, x, channels), as_matrix(out, call.extent));
    ctx.mark_non_differentiable({count});
    if (ctx.is_recording()) {
      ctx.save_for_backward({x, weight, bias, mask, mean, variance, count});
      ctx.set("call", call);
      ctx.set_materialize_grads(false);
    }
    return {out, mean, variance, count};
  }

  static TensorList backward(Context& ctx, const TensorList& grad_outputs) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &mask = saved[3];
    const ColumnNormCall call = ctx.get<ColumnNormCall>("call");
    const Tensor dy = grad_outputs[0].defined() ? grad_outputs[0].contiguous() : zeros_like(x);
    const Tensor &dmean = grad_outputs[1], &dvariance = grad_outputs[2];
    if (GradMode::is_enabled()) {
      const auto or_zeros = [&](const Tensor& grad) {
        return grad.defined() ? grad : zeros_like(saved[4]);
      };
      TensorList grads = composite_backward(
          [&](const TensorList& in) { return definition(in[0], in[1], in[2], mask, call); },
          {x, weight, bias}, {dy, or_zeros(dmean), or_zeros(dvariance)});
      grads.emplace_back();
      return grads;
    }
    const Tensor mean = saved[4].detach(), variance = saved[5].detach();
    const Tensor n = clamp(saved[6].detach(), 1.0);
    const Tensor view = as_matrix(x, call.extent), dy_view = as_matrix(dy, call.extent);
    const Tensor sum_dy = empty_like(mean), sum_dy_d = empty_like(mean);
    backend(x).column_sums(view, mean, dy_view, sum_dy, sum_dy_d);
    const Tensor rstd = reciprocal_deviation(variance, call);
    Tensor dx;
    if (ctx.needs_input_grad(0)) {
      // dx = a dy + m (b (x - mean) + c), m = 0 where masked.
      const Tensor a = rstd * gain_of(weight, x, call.extent[1]);
      Tensor b = neg(a * square(rstd) * sum_dy_d / n);
      // A clamped variance is a constant.
      if (call.clamp_variance) b = masked_fill(b, variance < call.eps, 0.0);
      if (dvariance.defined()) b = b + 2.0 * dvariance / n;
      Tensor c = neg(a * sum_dy / n);
      if (dmean.defined()) c = c + dmean / n;
      dx = empty_like(x);
      backend(x).column_affine(view, mask, mean, dy_view, a, b, c, as_matrix(dx, call.extent));
    }
    const auto wanted = [&](std::size_t i, const Tensor& parameter, const Tensor& grad) {
      return ctx.needs_input_grad(i) && parameter.defined() ? grad.to(parameter.dtype()) : Tensor();
    };
    return {dx, wanted(1, weight, sum_dy_d * rstd), wanted(2, bias, sum_dy), {}};
  }
};

/// Statistics that are constants.
struct FixedStatistics {
  static Tensor forward(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const Tensor& mean, const Tensor& rstd, const Shape& extent) {
    const Tensor out = empty_like(x);
    backend(x).column_affine(as_matrix(x, extent), Tensor(), mean, Tensor(), Tensor(),
                             rstd * gain_of(weight, x, extent[1]), shift_of(bias, x, extent[1]),
                             as_matrix(out, extent));
    if (ctx.is_recording()) {
      ctx.save_for_backward({x, weight, bias, mean, rstd});
      ctx.set("extent", extent);
    }
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2];
    const Tensor &mean = saved[3], &rstd = saved[4];
    const auto extent = ctx.get<Shape>("extent");
    if (GradMode::is_enabled()) {
      TensorList grads = composite_backward(
          [&](const TensorList& in) {
            const Tensor y =
                affine_of(in_accumulate_type(in[0]).reshape(extent), mean, rstd, in[1], in[2]);
            return TensorList{y.reshape(in[0].shape()).to(in[0].dtype())};
          },
          {x, weight, bias}, {grad_output});
      grads.resize(5);
      return grads;
    }
    const Tensor view = as_matrix(x, extent), dy = as_matrix(grad_output.contiguous(), extent);
    const Tensor sum_dy = empty_like(mean), sum_dy_d = empty_like(mean);
    if (ctx.needs_input_grad(1) || ctx.needs_input_grad(2))
      backend(x).column_sums(view, mean, dy, sum_dy, sum_dy_d);
    const Tensor dx = gradient_for(x, ctx.needs_input_grad(0));
    if (dx.defined()) {
      const Tensor none = zeros_like(mean);
      backend(x).column_affine(view, Tensor(), mean, dy, rstd * gain_of(weight, x, extent[1]), none,
                               none, as_matrix(dx, extent));
    }
    const auto wanted = [&](std::size_t i, const Tensor& parameter, const Tensor& grad) {
      return ctx.needs_input_grad(i) && parameter.defined() ? grad.to(parameter.dtype()) : Tensor();
    };
    return {dx, wanted(1, weight, sum_dy_d * rstd), wanted(2, bias, sum_dy), {}, {}};
  }
};

template <ColumnOp op, class Statistics>
struct ColumnNorm : Function<ColumnNorm<op, Statistics>>, Statistics {
  static constexpr const char* name = name_of(op);
};

}  // namespace

TensorList column_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                       const Tensor& mask, const ColumnNormCall& call) {
  return with_name(call.op, [&]<ColumnOp op>() {
    return ColumnNorm<op, BatchStatistics>::apply(x.contiguous(), contiguous_or_undefined(weight),
                                                  contiguous_or_undefined(bias),
                                                  contiguous_or_undefined(mask), call);
  });
}

Tensor column_norm_with(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const Tensor& mean, const Tensor& variance, const ColumnNormCall& call) {
  const DType dtype = accumulate_dtype(x.dtype());
  Tensor centre, rstd;
  {
    const NoGradGuard no_grad;
    // A copy: the running statistics may move before the backward.
    centre = mean.detach().to(dtype).clone();
    rstd = reciprocal_deviation(variance.detach().to(dtype), call).contiguous();
  }
  return with_name(call.op, [&]<ColumnOp op>() {
    return ColumnNorm<op, FixedStatistics>::apply(x.contiguous(), contiguous_or_undefined(weight),
                                                  contiguous_or_undefined(bias), centre, rstd,
                                                  call.extent);
  });
}

void check_running(const char* name, const Tensor& mean, const Tensor& var, const Tensor& input,
                   std::int64_t channels) {
  check<ValueError>(mean.defined() == var.defined(), name,
                    "running_mean and running_var must both be given, or neither; got {}",
                    mean.defined() ? "running_mean alone" : "running_var alone");
  if (!mean.defined()) return;
  for (const Tensor& running : {mean, var}) {
    check<ShapeError>(running.shape() == Shape{channels}, name,
                      "running statistics must have the shape {}; got {}", Shape{channels},
                      running.shape());
    check<DTypeError>(running.is_floating_point(), name,
                      "running statistics must be floating-point; got {}", running.dtype());
    check<DeviceError>(running.device() == input.device(), name,
                       "running statistics must be on the input's device {}; got {}; move one "
                       "with .to(device)",
                       input.device(), running.device());
  }
}

void move_running(const Tensor& running, const Tensor& batch, double momentum,
                  const Tensor& count) {
  if (!running.defined()) return;
  const NoGradGuard no_grad;
  const Tensor target = batch.detach(), before = running.to(target.dtype());
  const Tensor moved = before * (1.0 - momentum) + target * momentum;
  running.copy_(where(count.detach() > 0.0, moved, before));
}

Shape channels_second(const Tensor& input) {
  std::int64_t inner = 1;
  for (std::int64_t i = 2; i < input.dim(); ++i) inner *= input.size(i);
  return {input.size(0), input.size(1), inner};
}

Shape channels_last(const Tensor& input) {
  std::int64_t outer = 1;
  for (std::int64_t i = 0; i < input.dim() - 1; ++i) outer *= input.size(i);
  return {outer, input.size(-1), 1};
}

}  // namespace norma::detail
