#include "norma/ops/weight_norm.h"

#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"
#include "norma/ops/norm_checks.h"
#include "norma/ops/reduction.h"
#include "norma/ops/view.h"

namespace norma {

using detail::in_accumulate_type;
using detail::RowLayout;

namespace {

/// Of v as [rows, width] with g as [rows, 1].
struct WeightNormRule {
  static constexpr const char* name = "weight_norm";
  RowNormParams params;
  RowLayout layout;
  Tensor composite(const Tensor& v, const Tensor& g, const Tensor&) const {
    return composite::weight_norm(v, g, 0);
  }
};

/// The shape of |v|.
Shape norm_shape(const Tensor& v, std::optional<std::int64_t> dim) {
  if (!dim) return {};
  Shape shape = Shape::filled(v.dim(), 1);
  shape[*dim] = v.size(*dim);
  return shape;
}

std::optional<std::int64_t> checked_dim(const char* name, const Tensor& v,
                                        std::optional<std::int64_t> dim) {
  detail::check_norm_input(name, v);
  if (dim) *dim = normalize_dim(*dim, v.dim(), name);
  return dim;
}

/// `weight` as a matrix [size of dim, rest].
Tensor as_rows_of(const Tensor& weight, std::int64_t dim) {
  const Tensor first = dim == 0 ? weight : weight.transpose(0, dim);
  return first.reshape({first.size(0), first.numel() / std::max<std::int64_t>(first.size(0), 1)});
}

/// u^T W v of the matrix W in the accumulate type, as a scalar.
Tensor sigma_of(const Tensor& matrix, const Tensor& u, const Tensor& v) {
  return matmul(matmul(in_accumulate_type(u).unsqueeze(0), matrix),
                in_accumulate_type(v).unsqueeze(-1))
      .reshape({});
}

struct SpectralNorm : Function<SpectralNorm> {
  static constexpr const char* name = "spectral_norm";

  static Tensor forward(Context& ctx, const Tensor& weight, const Tensor& u, const Tensor& v,
                        std::int64_t dim) {
    const Tensor x = in_accumulate_type(weight.detach());
    const Tensor sigma = sigma_of(as_rows_of(x, dim), u, v);
    if (ctx.is_recording()) {
      ctx.save_for_backward({weight, u, v, sigma});
      ctx.set("dim", dim);
    }
    return (x / sigma).to(weight.dtype());
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor &weight = saved[0], &u = saved[1], &v = saved[2], &sigma = saved[3];
    const auto dim = ctx.get<std::int64_t>("dim");
    if (GradMode::is_enabled()) {
      const TensorList grads = composite_backward(
          [&](const TensorList& in) {
            return TensorList{composite::spectral_norm(in[0], u, v, dim)};
          },
          {weight}, {grad_output});
      return {grads[0], {}, {}};
    }
    // The rows of the matrix are those of W as it stands with `dim` first.
    const Tensor matrix = as_rows_of(in_accumulate_type(weight), dim);
    const Tensor dout = as_rows_of(in_accumulate_type(grad_output), dim);
    const Tensor share = (dout * matrix).sum() / sigma;
    const Tensor rank_one = in_accumulate_type(u).unsqueeze(-1) * in_accumulate_type(v);
    Shape first = weight.shape();
    std::swap(first[0], first[dim]);
    const Tensor dmatrix = (dout - share * rank_one) / sigma;
    return {dmatrix.reshape(first).transpose(0, dim).contiguous().to(weight.dtype()), {}, {}};
  }
};

}  // namespace

Tensor weight_norm(const Tensor& v, const Tensor& g, std::optional<std::int64_t> dim) {
  constexpr const char* name = "weight_norm";
  dim = checked_dim(name, v, dim);
  check<ValueError>(g.defined(), name, "g must be defined; got an empty Tensor handle");
  detail::check_parameter(name, "g", g, v, norm_shape(v, dim));
  if (dim && *dim != 0)
    return weight_norm(v.transpose(0, *dim), g.transpose(0, *dim), 0)
        .transpose(0, *dim)
        .contiguous();
  const std::int64_t rows = dim ? v.size(0) : 1;
  const std::int64_t width = rows == 0 ? 0 : v.numel() / rows;
  RowNormParams p = detail::row_norm_params(false, width, {}, 0.0);
  p.divisor = 1.0;
  const Shape matrix{rows, width};
  return detail::RowNorm<WeightNormRule>::apply(v.reshape(matrix).contiguous(),
                                                g.reshape({rows, 1}).contiguous(), Tensor(),
                                                WeightNormRule{p, {matrix, {rows, 1}}})
      .reshape(v.shape());
}

Tensor spectral_norm(const Tensor& weight, const Tensor& u, const Tensor& v,
                     std::int64_t n_power_iterations, std::int64_t dim, double eps) {
  constexpr const char* name = "spectral_norm";
  dim = *checked_dim(name, weight, dim);
  check<ShapeError>(weight.dim() >= 2, name, "the weight must have at least two dimensions; got {}",
                    weight.shape());
  check<ShapeError>(weight.numel() > 0, name,
                    "the weight must have elements, for there to be a singular value; got {}",
                    weight.shape());
  detail::check_eps(name, eps);
  check<ValueError>(n_power_iterations >= 0, name, "n_power_iterations must be at least 0; got {}",
                    n_power_iterations);
  check<ValueError>(u.defined() && v.defined(), name,
                    "u and v must be defined; got an empty Tensor handle");
  detail::check_parameter(name, "u", u, weight, {weight.size(dim)});
  detail::check_parameter(name, "v", v, weight, {weight.numel() / weight.size(dim)});
  {
    const NoGradGuard no_grad;
    const Tensor matrix = as_rows_of(weight.detach(), dim);
    for (std::int64_t i = 0; i < n_power_iterations; ++i) {
      u.copy_(normalize(matmul(matrix, v.unsqueeze(-1)).squeeze(-1), -1, eps));
      v.copy_(normalize(matmul(matrix.t(), u.unsqueeze(-1)).squeeze(-1), -1, eps));
    }
  }
  // Copies: the next step of training moves u and v.
  return SpectralNorm::apply(weight, u.detach().clone(), v.detach().clone(), dim);
}

void unit_norm_(const Tensor& weight, std::int64_t dim) {
  detail::check_norm_input("unit_norm_", weight);
  const NoGradGuard no_grad;
  // The floor is PyTorch's of F.normalize: squares below the smallest normal number are lost, and a
  // row whose length is lost with them must not grow without bound.
  weight.copy_(normalize(weight.detach(), dim, 1e-12));
}

namespace composite {

Tensor weight_norm(const Tensor& v, const Tensor& g, std::optional<std::int64_t> dim) {
  const Tensor x = in_accumulate_type(v);
  Shape reduced;
  for (std::int64_t i = 0; i < v.dim(); ++i)
    if (!dim || i != *dim) reduced.push_back(i);
  // A vector under dim: each element is a row of its own.
  const Tensor squares = reduced.empty() ? square(x) : square(x).sum(reduced, true);
  return (x * (in_accumulate_type(g) * rsqrt(squares))).to(v.dtype());
}

Tensor spectral_norm(const Tensor& weight, const Tensor& u, const Tensor& v, std::int64_t dim) {
  const Tensor x = in_accumulate_type(weight);
  return (x / sigma_of(as_rows_of(x, dim), u, v)).to(weight.dtype());
}

}  // namespace composite

}  // namespace norma
