#include "norma/ops/fused_norm.h"

#include "norma/ops/dropout.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/norm_checks.h"

namespace norma {

using detail::as_matrix;
using detail::gradient_for;
using detail::RowLayout;

namespace {

/// What one call of AddNorm has besides its tensors.
struct AddNormCall {
  RowNormParams params;
  RowLayout layout;
  Shape normalized_shape;
  ResidualOptions options;
};

/// The definition of the norm alone.
Tensor normalized(bool centred, const Tensor& x, const Shape& normalized_shape,
                  const Tensor& weight, const Tensor& bias, const NormOptions& options) {
  return centred ? composite::layer_norm(x, normalized_shape, weight, bias, options)
                 : composite::rms_norm(x, normalized_shape, weight, bias, options);
}

template <bool centred>
struct AddNorm : Function<AddNorm<centred>> {
  static constexpr const char* name = centred ? "add_layer_norm" : "add_rms_norm";

  static TensorList forward(Context& ctx, const Tensor& x, const Tensor& residual,
                            const Tensor& weight, const Tensor& bias, const AddNormCall& call) {
    const Shape &rows = call.layout.rows, &gain = call.layout.weight;
    const bool recording = ctx.is_recording();
    const Tensor out = empty_like(x);
    const Tensor sum = empty_like(x);
    const Tensor mean = detail::row_statistic(x, rows[0], recording && call.params.centred);
    const Tensor rstd = detail::row_statistic(x, rows[0], recording);
    backend(x).row_norm(as_matrix(x, rows), as_matrix(residual, rows), as_matrix(weight, gain),
                        as_matrix(bias, gain), call.params, as_matrix(out, rows),
                        as_matrix(sum, rows), mean, rstd);
    if (recording) {
      // Not x and residual: the norm sees their sum alone.
      ctx.save_for_backward({weight, bias, sum, mean, rstd});
      ctx.set("call", call);
      ctx.set_materialize_grads(false);
    }
    return {out, sum};
  }

  static TensorList backward(Context& ctx, const TensorList& grad_outputs) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor &weight = saved[0], &bias = saved[1], &sum = saved[2];
    const AddNormCall call = ctx.get<AddNormCall>("call");
    const Tensor dy = grad_outputs[0].defined() ? grad_outputs[0].contiguous() : zeros_like(sum);
    const Tensor& dsum = grad_outputs[1];
    if (GradMode::is_enabled()) return composite_gradients(call, sum, weight, bias, dy, dsum);
    const Shape &rows = call.layout.rows, &gain = call.layout.weight;
    const Tensor dx = gradient_for(sum, ctx.needs_input_grad(0));
    const Tensor dresidual = gradient_for(sum, ctx.needs_input_grad(1));
    const Tensor dweight = gradient_for(weight, ctx.needs_input_grad(2));
    const Tensor dbias = gradient_for(bias, ctx.needs_input_grad(3));
    backend(sum).row_norm_backward(
        as_matrix(sum, rows), as_matrix(weight, gain), saved[3], saved[4], as_matrix(dy, rows),
        as_matrix(detail::contiguous_or_undefined(dsum), rows), call.params, as_matrix(dx, rows),
        as_matrix(dresidual, rows), as_matrix(dweight, gain), as_matrix(dbias, gain));
    return {dx, dresidual, dweight, dbias};
  }

 private:
  /// The gradients in differentiable operations.
  static TensorList composite_gradients(const AddNormCall& call, const Tensor& sum,
                                        const Tensor& weight, const Tensor& bias, const Tensor& dy,
                                        const Tensor& dsum) {
    const TensorList grads = composite_backward(
        [&call](const TensorList& in) {
          return TensorList{normalized(call.params.centred, in[0], call.normalized_shape, in[1],
                                       in[2], call.options.norm)};
        },
        {sum, weight, bias}, {dy});
    if (!grads[0].defined()) return {{}, {}, grads[1], grads[2]};
    const Tensor total = dsum.defined() ? grads[0] + dsum : grads[0];
    const double p = call.params.dropout_p;
    return {p > 0.0 ? detail::dropout(total, p, call.params.philox) : total,
            call.params.alpha * total, grads[1], grads[2]};
  }
};

template <bool centred>
struct DualNorm : Function<DualNorm<centred>> {
  static constexpr const char* name = centred ? "dual_layer_norm" : "dual_rms_norm";

  static TensorList forward(Context& ctx, const Tensor& x, const Tensor& weight1,
                            const Tensor& bias1, const Tensor& weight2, const Tensor& bias2,
                            const RowNormParams& p) {
    const bool recording = ctx.is_recording();
    const Tensor rows = detail::as_rows(x);
    const Tensor out1 = empty_like(x), out2 = empty_like(x);
    const Tensor mean = detail::row_statistic(x, rows.size(0), recording && p.centred);
    const Tensor rstd = detail::row_statistic(x, rows.size(0), recording);
    backend(x).dual_norm(rows, weight1, bias1, weight2, bias2, p, detail::as_rows(out1),
                         detail::as_rows(out2), mean, rstd);
    if (recording) {
      ctx.save_for_backward({x, weight1, bias1, weight2, bias2, mean, rstd});
      ctx.set("params", p);
    }
    return {out1, out2};
  }

  static TensorList backward(Context& ctx, const TensorList& grad_outputs) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor& x = saved[0];
    const auto p = ctx.get<RowNormParams>("params");
    if (GradMode::is_enabled()) {
      const NormOptions options{
          .eps = p.eps, .eps_rule = p.eps_rule, .unit_offset = p.weight_offset != 0.0};
      return composite_backward(
          [&](const TensorList& in) {
            const DualNormWeights weights{in[1], in[2], in[3], in[4]};
            const auto [y1, y2] = p.centred ? composite::dual_layer_norm(in[0], weights, options)
                                            : composite::dual_rms_norm(in[0], weights, options);
            return TensorList{y1, y2};
          },
          {saved.begin(), saved.begin() + 5}, grad_outputs);
    }
    TensorList gradients;
    for (std::size_t i = 0; i < 5; ++i)
      gradients.push_back(gradient_for(saved[i], ctx.needs_input_grad(i)));
    backend(x).dual_norm_backward(detail::as_rows(x), saved[1], saved[3], saved[5], saved[6],
                                  detail::as_rows(grad_outputs[0].contiguous()),
                                  detail::as_rows(grad_outputs[1].contiguous()), p,
                                  detail::as_rows(gradients[0]), gradients[1], gradients[2],
                                  gradients[3], gradients[4]);
    return gradients;
  }
};

double eps_of(bool centred, const Tensor& x, const NormOptions& options) {
  return options.eps.value_or(centred ? 1e-5 : detail::default_eps(x.dtype()));
}

template <bool centred>
std::pair<Tensor, Tensor> dual(const Tensor& x, const DualNormWeights& weights,
                               const NormOptions& options) {
  constexpr const char* name = DualNorm<centred>::name;
  detail::check_norm_input(name, x);
  check<ShapeError>(x.dim() >= 1, name, "the input must have a dimension; got {}", x.shape());
  const double eps = eps_of(centred, x, options);
  detail::check_eps(name, eps);
  const Shape normalized{x.size(-1)};
  detail::check_parameter(name, "weight1", weights.weight1, x, normalized);
  detail::check_parameter(name, "bias1", weights.bias1, x, normalized);
  detail::check_parameter(name, "weight2", weights.weight2, x, normalized);
  detail::check_parameter(name, "bias2", weights.bias2, x, normalized);
  const TensorList out =
      DualNorm<centred>::apply(x.contiguous(), detail::contiguous_or_undefined(weights.weight1),
                               detail::contiguous_or_undefined(weights.bias1),
                               detail::contiguous_or_undefined(weights.weight2),
                               detail::contiguous_or_undefined(weights.bias2),
                               detail::row_norm_params(centred, x.size(-1), options, eps));
  return {out[0], out[1]};
}

std::pair<Tensor, Tensor> add_norm(bool centred, const Tensor& x, const Tensor& residual,
                                   const Shape& normalized_shape, const Tensor& weight,
                                   const Tensor& bias, const ResidualOptions& options) {
  const bool random = options.training && options.dropout_p > 0.0 && x.defined();
  const PhiloxState state =
      random ? default_generator(x.device()).reserve(x.numel()) : PhiloxState{};
  return detail::add_norm(centred, x, residual, normalized_shape, weight, bias, options, state);
}

}  // namespace

namespace detail {

std::pair<Tensor, Tensor> add_norm(bool centred, const Tensor& x, const Tensor& residual,
                                   const Shape& normalized_shape, const Tensor& weight,
                                   const Tensor& bias, const ResidualOptions& options,
                                   const PhiloxState& state) {
  const char* name = centred ? AddNorm<true>::name : AddNorm<false>::name;
  check_norm_input(name, x);
  check<ValueError>(residual.defined(), name,
                    "residual must be defined; got an empty Tensor handle");
  check_parameter(name, "residual", residual, x, x.shape());
  check_normalized(name, x, normalized_shape);
  check<ValueError>(options.dropout_p >= 0.0 && options.dropout_p <= 1.0, name,
                    "dropout_p must be in [0, 1]; got {}", options.dropout_p);
  const double eps = eps_of(centred, x, options.norm);
  check_eps(name, eps);
  AddNormCall call{
      .params = detail::row_norm_params(centred, normalized_shape.numel(), options.norm, eps),
      .layout = {},
      .normalized_shape = normalized_shape,
      .options = options};
  call.params.alpha = options.alpha;
  call.params.dropout_p = options.training ? options.dropout_p : 0.0;
  call.params.philox = state;
  call.layout = gain_layout(name, x, normalized_shape, weight, bias, call.params);
  const auto apply = [&]<bool of_layer_norm>() {
    return AddNorm<of_layer_norm>::apply(x.contiguous(), residual.contiguous(),
                                         contiguous_or_undefined(weight),
                                         contiguous_or_undefined(bias), call);
  };
  const TensorList out =
      centred ? apply.template operator()<true>() : apply.template operator()<false>();
  return {out[0], out[1]};
}

}  // namespace detail

std::pair<Tensor, Tensor> add_layer_norm(const Tensor& x, const Tensor& residual,
                                         const Shape& normalized_shape, const Tensor& weight,
                                         const Tensor& bias, const ResidualOptions& options) {
  return add_norm(true, x, residual, normalized_shape, weight, bias, options);
}

std::pair<Tensor, Tensor> add_rms_norm(const Tensor& x, const Tensor& residual,
                                       const Shape& normalized_shape, const Tensor& weight,
                                       const Tensor& bias, const ResidualOptions& options) {
  return add_norm(false, x, residual, normalized_shape, weight, bias, options);
}

std::pair<Tensor, Tensor> dual_layer_norm(const Tensor& x, const DualNormWeights& weights,
                                          const NormOptions& options) {
  return dual<true>(x, weights, options);
}

std::pair<Tensor, Tensor> dual_rms_norm(const Tensor& x, const DualNormWeights& weights,
                                        const NormOptions& options) {
  return dual<false>(x, weights, options);
}

namespace composite {

std::pair<Tensor, Tensor> add_norm(bool centred, const Tensor& x, const Tensor& residual,
                                   const Shape& normalized_shape, const Tensor& weight,
                                   const Tensor& bias, const ResidualOptions& options,
                                   const PhiloxState& state) {
  Tensor added = detail::in_accumulate_type(x);
  if (options.training && options.dropout_p > 0.0)
    added = composite::dropout(added, options.dropout_p, state);
  const Tensor sum = (options.alpha * detail::in_accumulate_type(residual) + added).to(x.dtype());
  return {normalized(centred, sum, normalized_shape, weight, bias, options.norm), sum};
}

std::pair<Tensor, Tensor> dual_layer_norm(const Tensor& x, const DualNormWeights& weights,
                                          const NormOptions& options) {
  const Shape width{x.size(-1)};
  return {composite::layer_norm(x, width, weights.weight1, weights.bias1, options),
          composite::layer_norm(x, width, weights.weight2, weights.bias2, options)};
}

std::pair<Tensor, Tensor> dual_rms_norm(const Tensor& x, const DualNormWeights& weights,
                                        const NormOptions& options) {
  const Shape width{x.size(-1)};
  return {composite::rms_norm(x, width, weights.weight1, weights.bias1, options),
          composite::rms_norm(x, width, weights.weight2, weights.bias2, options)};
}

}  // namespace composite

}  // namespace norma
