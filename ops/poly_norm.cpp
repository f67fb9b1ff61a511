#include "norma/ops/poly_norm.h"

#include "norma/ops/elementwise.h"
#include "norma/ops/norm_checks.h"
#include "norma/ops/reduction.h"
#include "norma/ops/view.h"

namespace norma {

namespace {

struct PolyNorm : Function<PolyNorm> {
  static constexpr const char* name = "poly_norm";

  static Tensor forward(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        double eps) {
    const Tensor out = empty_like(x);
    const Tensor rows = detail::as_rows(x);
    Tensor rstd;
    if (ctx.is_recording())
      rstd = empty({rows.size(0), 3},
                   {.dtype = detail::accumulate_dtype(x.dtype()), .device = x.device()});
    backend(x).poly_norm(rows, weight, bias, eps, detail::as_rows(out), rstd);
    if (ctx.is_recording()) {
      ctx.save_for_backward({x, weight, bias, rstd});
      ctx.set("eps", eps);
    }
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2];
    if (GradMode::is_enabled()) {
      const double eps = ctx.get<double>("eps");
      return composite_backward(
          [eps](const TensorList& in) {
            return TensorList{composite::poly_norm(in[0], in[1], in[2], eps)};
          },
          {x, weight, bias}, {grad_output});
    }
    const Tensor dx = detail::gradient_for(x, ctx.needs_input_grad(0));
    const Tensor dweight = detail::gradient_for(weight, ctx.needs_input_grad(1));
    const Tensor dbias = detail::gradient_for(bias, ctx.needs_input_grad(2));
    backend(x).poly_norm_backward(detail::as_rows(x), weight, saved[3],
                                  detail::as_rows(grad_output.contiguous()), detail::as_rows(dx),
                                  dweight, dbias);
    return {dx, dweight, dbias};
  }
};

}  // namespace

Tensor poly_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps) {
  constexpr const char* name = "poly_norm";
  detail::check_norm_input(name, input);
  detail::check_eps(name, eps);
  check<ShapeError>(input.dim() >= 1, name, "the input must have a dimension; got {}",
                    input.shape());
  check<ValueError>(weight.defined(), name, "weight must be defined; got an empty Tensor handle");
  detail::check_parameter(name, "weight", weight, input, {3});
  detail::check_parameter(name, "bias", bias, input, {1});
  return PolyNorm::apply(input.contiguous(), weight.contiguous(),
                         detail::contiguous_or_undefined(bias), eps);
}

namespace composite {

Tensor poly_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor x = detail::in_accumulate_type(input);
  const Tensor w = detail::in_accumulate_type(weight);
  const auto n = [eps](const Tensor& u) { return u * rsqrt(square(u).mean({-1}, true) + eps); };
  Tensor y =
      w.narrow(0, 0, 1) * n(x * x * x) + w.narrow(0, 1, 1) * n(x * x) + w.narrow(0, 2, 1) * n(x);
  if (bias.defined()) y = y + detail::in_accumulate_type(bias);
  return y.to(input.dtype());
}

}  // namespace composite

}  // namespace norma
