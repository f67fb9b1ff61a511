#include "norma/ops/point_norm.h"

#include "norma/ops/elementwise.h"
#include "norma/ops/norm_checks.h"
#include "norma/ops/view.h"

namespace norma {

using detail::in_accumulate_type;

namespace {

Tensor definition(Squash curve, const Tensor& x, const Tensor& alpha, const Tensor& shift,
                  const Tensor& weight, const Tensor& bias) {
  switch (curve) {
    case Squash::tanh:
      return composite::dynamic_tanh(x, alpha, weight, bias);
    case Squash::erf:
      return composite::dynamic_erf(x, alpha, shift, weight, bias);
    case Squash::identity:
      break;
  }
  return composite::head_scale(x, weight);
}

template <Squash curve, bool of_heads>
struct PointNorm : Function<PointNorm<curve, of_heads>> {
  static constexpr const char* name = curve == Squash::tanh  ? "dynamic_tanh"
                                      : curve == Squash::erf ? "dynamic_erf"
                                      : of_heads             ? "head_scale"
                                                             : "layer_scale";

  static Tensor forward(Context& ctx, const Tensor& x, const Tensor& alpha, const Tensor& shift,
                        const Tensor& weight, const Tensor& bias) {
    const Tensor out = empty_like(x);
    backend(x).squash(curve, detail::as_rows(x), alpha, shift, weight, bias, detail::as_rows(out));
    if (ctx.is_recording()) ctx.save_for_backward({x, alpha, shift, weight, bias});
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const TensorList saved = ctx.saved_tensors();
    if (GradMode::is_enabled())
      return composite_backward(
          [](const TensorList& in) {
            return TensorList{definition(curve, in[0], in[1], in[2], in[3], in[4])};
          },
          saved, {grad_output});
    TensorList grads;
    for (std::size_t i = 0; i < saved.size(); ++i)
      grads.push_back(detail::gradient_for(saved[i], ctx.needs_input_grad(i)));
    backend(saved[0]).squash_backward(curve, detail::as_rows(saved[0]), saved[1], saved[2],
                                      saved[3], detail::as_rows(grad_output.contiguous()),
                                      detail::as_rows(grads[0]), grads[1], grads[2], grads[3],
                                      grads[4]);
    return grads;
  }
};

struct Softcap : Function<Softcap> {
  static constexpr const char* name = "softcap";

  static Tensor forward(Context& ctx, const Tensor& x, double cap) {
    const Tensor out = empty_like(x);
    backend(x).softcap(x.detach(), cap, out);
    if (ctx.is_recording()) {
      ctx.save_for_backward({out});
      ctx.set("cap", cap);
    }
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const Tensor y = ctx.saved_tensor(0);
    const double cap = ctx.get<double>("cap");
    if (GradMode::is_enabled()) return {grad_output * (1.0 - square(y / cap))};
    const Tensor dx = empty_like(y);
    backend(y).softcap_backward(y.detach(), cap, grad_output.contiguous(), dx);
    return {dx};
  }
};

template <Squash curve, bool of_heads = false>
Tensor run(const Tensor& input, const Tensor& alpha, const Tensor& shift, const Tensor& weight,
           const Tensor& bias) {
  const auto packed = [](const Tensor& t) { return detail::contiguous_or_undefined(t); };
  return PointNorm<curve, of_heads>::apply(input.contiguous(), packed(alpha), packed(shift),
                                           packed(weight), packed(bias));
}

void check_squashed(const char* name, const Tensor& input, const Tensor& alpha,
                    const Tensor& weight, const Tensor& bias) {
  detail::check_norm_input(name, input);
  check<ShapeError>(input.dim() >= 1, name, "the input must have a dimension; got {}",
                    input.shape());
  check<ValueError>(alpha.defined(), name, "alpha must be defined; got an empty Tensor handle");
  detail::check_parameter(name, "alpha", alpha, input, {1});
  detail::check_parameter(name, "weight", weight, input, {input.size(-1)});
  detail::check_parameter(name, "bias", bias, input, {input.size(-1)});
}

}  // namespace

Tensor dynamic_tanh(const Tensor& input, const Tensor& alpha, const Tensor& weight,
                    const Tensor& bias) {
  check_squashed("dynamic_tanh", input, alpha, weight, bias);
  return run<Squash::tanh>(input, alpha, {}, weight, bias);
}

Tensor dynamic_erf(const Tensor& input, const Tensor& alpha, const Tensor& shift,
                   const Tensor& weight, const Tensor& bias) {
  check_squashed("dynamic_erf", input, alpha, weight, bias);
  detail::check_parameter("dynamic_erf", "shift", shift, input, {1});
  return run<Squash::erf>(input, alpha, shift, weight, bias);
}

Tensor layer_scale(const Tensor& input, const Tensor& gamma) {
  constexpr const char* name = "layer_scale";
  detail::check_norm_input(name, input);
  check<ValueError>(gamma.defined() && input.dim() >= 1, name,
                    "gamma must be defined and the input have a dimension; got {}", input.shape());
  detail::check_parameter(name, "gamma", gamma, input, {gamma.numel() == 1 ? 1 : input.size(-1)});
  return run<Squash::identity>(input, {}, {}, gamma, {});
}

Tensor head_scale(const Tensor& input, const Tensor& gamma) {
  constexpr const char* name = "head_scale";
  detail::check_norm_input(name, input);
  check<ShapeError>(
      gamma.defined() && gamma.dim() == 1 && gamma.numel() > 0 && input.dim() >= 1 &&
          input.size(-1) % gamma.numel() == 0,
      name, "the heads of gamma must divide the last dimension of the input {}; got gamma {}",
      input.shape(), gamma.defined() ? gamma.shape() : Shape{});
  detail::check_like_input(name, "gamma", gamma, input);
  return run<Squash::identity, true>(input, {}, {}, gamma, {});
}

Tensor softcap(const Tensor& input, double cap) {
  detail::check_norm_input("softcap", input);
  check<ValueError>(cap > 0.0, "softcap", "cap must be positive; got {}", cap);
  return Softcap::apply(input.contiguous(), cap);
}

namespace composite {

namespace {
Tensor affine(Tensor y, const Tensor& weight, const Tensor& bias, DType dtype) {
  if (weight.defined()) y = y * in_accumulate_type(weight);
  if (bias.defined()) y = y + in_accumulate_type(bias);
  return y.to(dtype);
}
}  // namespace

Tensor dynamic_tanh(const Tensor& input, const Tensor& alpha, const Tensor& weight,
                    const Tensor& bias) {
  return affine(tanh(in_accumulate_type(input) * in_accumulate_type(alpha)), weight, bias,
                input.dtype());
}

Tensor dynamic_erf(const Tensor& input, const Tensor& alpha, const Tensor& shift,
                   const Tensor& weight, const Tensor& bias) {
  Tensor z = in_accumulate_type(input) * in_accumulate_type(alpha);
  if (shift.defined()) z = z + in_accumulate_type(shift);
  return affine(erf(z), weight, bias, input.dtype());
}

Tensor layer_scale(const Tensor& input, const Tensor& gamma) {
  return affine(in_accumulate_type(input), gamma, {}, input.dtype());
}

Tensor head_scale(const Tensor& input, const Tensor& gamma) {
  Shape split = input.shape();
  split.back() = gamma.numel();
  split.push_back(input.size(-1) / gamma.numel());
  const Tensor gains = in_accumulate_type(gamma).unsqueeze(-1);
  return (in_accumulate_type(input).reshape(split) * gains)
      .reshape(input.shape())
      .to(input.dtype());
}

Tensor softcap(const Tensor& input, double cap) {
  return (cap * tanh(in_accumulate_type(input) / cap)).to(input.dtype());
}

}  // namespace composite

}  // namespace norma
