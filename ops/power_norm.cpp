#include "norma/ops/power_norm.h"

#include "norma/ops/column_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/view.h"

namespace norma {

namespace {

Tensor gain_of(const Tensor& weight, const Tensor& like) {
  return weight.defined() ? detail::in_accumulate_type(weight.detach()) : ones_like(like);
}

struct PowerNorm : Function<PowerNorm> {
  static constexpr const char* name = "power_norm";

  static Tensor forward(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const Tensor& batch_phi, const Tensor& used_phi, const Tensor& nu,
                        const PowerNormOptions& options) {
    const Tensor out = empty_like(x);
    const Shape extent = detail::channels_last(x);
    const Tensor scale = rsqrt(used_phi + options.eps);
    const Tensor shift =
        bias.defined() ? detail::in_accumulate_type(bias.detach()) : zeros_like(scale);
    backend(x).column_affine(detail::as_matrix(x, extent), Tensor(), Tensor(), Tensor(), Tensor(),
                             scale * gain_of(weight, scale), shift, detail::as_matrix(out, extent));
    if (ctx.is_recording()) {
      ctx.save_for_backward({x, weight, bias, batch_phi, scale});
      ctx.set("nu", nu);  // moved by the backward, and so not under the eyes of SavedTensor
      ctx.set("options", options);
    }
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    check<NotImplementedError>(!GradMode::is_enabled(), name,
                               "its backward must not be differentiated, for it is no derivative; "
                               "got create_graph; use masked_batch_norm");
    const TensorList saved = ctx.saved_tensors();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2];
    const Tensor &batch_phi = saved[3], &scale = saved[4];
    const auto nu = ctx.get<Tensor>("nu");
    const auto options = ctx.get<PowerNormOptions>("options");
    const Shape extent = detail::channels_last(x);
    const Tensor view = detail::as_matrix(x, extent);
    const Tensor dy = detail::as_matrix(grad_output.contiguous(), extent);
    const Tensor sum_dy = empty_like(scale), sum_dy_x = empty_like(scale);
    backend(x).column_sums(view, Tensor(), dy, sum_dy, sum_dy_x);
    const Tensor gain = gain_of(weight, scale);
    Tensor dx;
    if (ctx.needs_input_grad(0)) {
      // g' = gain dy - leak z. Where phi was a constant nu is undefined, and there is no leak.
      const Tensor batch_scale = rsqrt(batch_phi + options.eps);
      Tensor leak = zeros_like(scale);
      if (nu.defined()) {
        leak = nu.to(scale.dtype()) * (1.0 - options.momentum_backward);
        const Tensor mean_square = empty_like(scale);
        const Tensor count = empty({1}, {.dtype = scale.dtype(), .device = x.device()});
        backend(x).column_statistics(view, Tensor(), Tensor(), mean_square, count);
        const Tensor of_g = gain * sum_dy_x * scale / clamp(count, 1.0);
        const Tensor mean = of_g - leak * mean_square * square(scale);
        nu.copy_(nu.to(scale.dtype()) + mean);
      }
      dx = empty_like(x);
      backend(x).column_affine(view, Tensor(), Tensor(), dy, gain * batch_scale,
                               neg(leak * scale * batch_scale), zeros_like(scale),
                               detail::as_matrix(dx, extent));
    }
    const auto wanted = [&](std::size_t i, const Tensor& parameter, const Tensor& grad) {
      return ctx.needs_input_grad(i) && parameter.defined() ? grad.to(parameter.dtype()) : Tensor();
    };
    return {dx, wanted(1, weight, sum_dy_x * scale), wanted(2, bias, sum_dy), {}, {}, {}};
  }
};

}  // namespace

Tensor power_norm(const Tensor& input, const Tensor& padding_mask, const Tensor& running_phi,
                  const Tensor& nu, const Tensor& weight, const Tensor& bias, bool training,
                  std::int64_t step, const PowerNormOptions& options) {
  constexpr const char* name = "power_norm";
  detail::check_norm_input(name, input);
  check<ShapeError>(input.dim() >= 1, name, "the input must be [..., channels]; got {}",
                    input.shape());
  const std::int64_t channels = input.size(-1);
  detail::check_eps(name, options.eps);
  detail::check_parameter(name, "weight", weight, input, {channels});
  detail::check_parameter(name, "bias", bias, input, {channels});
  check<ValueError>(running_phi.defined() && nu.defined(), name,
                    "running_phi and nu must be defined; got an empty Tensor handle");
  detail::check_running(name, running_phi, nu, input, channels);
  check<ValueError>(!training || step >= 1, name, "step counts from 1; got {}", step);
  const Shape tokens(input.shape().begin(), input.shape().end() - 1);
  check<ShapeError>(
      !padding_mask.defined() || (padding_mask.shape() == tokens && padding_mask.dtype() == bool_),
      name, "padding_mask must be bool of shape {}; got {}", tokens,
      padding_mask.defined() ? padding_mask.shape() : Shape{});
  const DType dtype = detail::accumulate_dtype(input.dtype());
  const Tensor x = input.contiguous();
  const Tensor w = detail::contiguous_or_undefined(weight);
  const Tensor b = detail::contiguous_or_undefined(bias);
  const Tensor running = running_phi.detach().to(dtype).clone();
  if (!training) return PowerNorm::apply(x, w, b, running, running, Tensor(), options);

  const Shape extent = detail::channels_last(input);
  const Tensor phi = empty({channels}, {.dtype = dtype, .device = input.device()});
  const Tensor count = empty({1}, {.dtype = dtype, .device = input.device()});
  backend(x).column_statistics(
      detail::as_matrix(x, extent),
      padding_mask.defined() ? padding_mask.reshape({extent[0], 1}).contiguous() : Tensor(),
      Tensor(), phi, count);
  const Tensor out =
      PowerNorm::apply(x, w, b, phi, step <= options.warmup_steps ? phi : running, nu, options);
  if (step < options.warmup_steps)
    detail::move_running(running_phi, phi, 1.0 / static_cast<double>(step), count);
  detail::move_running(running_phi, phi, 1.0 - options.momentum_forward, count);
  return out;
}

}  // namespace norma
