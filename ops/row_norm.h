// The one Function behind every norm of a row. For ops/*.cpp only.
#pragma once

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/ops/backend.h"
#include "norma/ops/rows.h"

namespace norma::detail {

/// A tensor's dimensions merged to two, off the tape; undefined stays undefined.
inline Tensor as_matrix(const Tensor& tensor, const Shape& shape) {
  return tensor.defined() ? tensor.detach().view(shape) : tensor;
}

/// An output of the shape of `tensor`, if its gradient is wanted.
inline Tensor gradient_for(const Tensor& tensor, bool wanted) {
  return wanted && tensor.defined() ? empty_like(tensor) : Tensor();
}

/// A statistic of each of `rows` rows of x, if someone will read it.
inline Tensor row_statistic(const Tensor& x, std::int64_t rows, bool wanted) {
  if (!wanted) return {};
  return empty({rows}, {.dtype = accumulate_dtype(x.dtype()), .device = x.device()});
}

/// How one call of a row norm is laid out.
struct RowLayout {
  Shape rows;    ///< [rows, width] of the input
  Shape weight;  ///< [W, C] of weight and bias
};

/// A row norm of x with weight and bias, contiguous, each of the latter possibly undefined. A rule
/// is a value with the arguments of one call: `name`, `RowNormParams params`, `RowLayout layout`,
/// and `Tensor composite(x, weight, bias) const`, its definition.
template <class Rule>
struct RowNorm : Function<RowNorm<Rule>> {
  static constexpr const char* name = Rule::name;

  static Tensor forward(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const Rule& rule) {
    const RowLayout& layout = rule.layout;
    const RowNormParams& p = rule.params;
    const bool recording = ctx.is_recording();
    const std::int64_t rows = layout.rows[0];
    Tensor out = empty_like(x);
    const Tensor mean = row_statistic(x, rows, recording && (p.centred || p.compressed));
    const Tensor rstd = row_statistic(x, rows, recording);
    backend(x).row_norm(as_matrix(x, layout.rows), Tensor(), as_matrix(weight, layout.weight),
                        as_matrix(bias, layout.weight), p, as_matrix(out, layout.rows), Tensor(),
                        mean, rstd);
    if (recording) {
      ctx.save_for_backward({x, weight, bias, mean, rstd});
      ctx.set("rule", rule);
    }
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2];
    const Rule rule = ctx.get<Rule>("rule");
    if (GradMode::is_enabled())
      return composite_backward(
          [&rule](const TensorList& in) { return TensorList{rule.composite(in[0], in[1], in[2])}; },
          {x, weight, bias}, {grad_output});
    const Shape &rows = rule.layout.rows, &gain = rule.layout.weight;
    const Tensor dx = gradient_for(x, ctx.needs_input_grad(0));
    const Tensor dweight = gradient_for(weight, ctx.needs_input_grad(1));
    const Tensor dbias = gradient_for(bias, ctx.needs_input_grad(2));
    backend(x).row_norm_backward(as_matrix(x, rows), as_matrix(weight, gain), saved[3], saved[4],
                                 as_matrix(grad_output.contiguous(), rows), Tensor(), rule.params,
                                 as_matrix(dx, rows), Tensor(), as_matrix(dweight, gain),
                                 as_matrix(dbias, gain));
    return {dx, dweight, dbias};
  }
};

}  // namespace norma::detail
