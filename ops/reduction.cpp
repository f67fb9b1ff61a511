// Reductions whose gradient follows from the sum, and what they all share. The extrema are in
// extremum.cpp.
#include "norma/ops/reduction.h"

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/core/required_ops.h"
#include "norma/ops/backend.h"
#include "norma/ops/cast.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/index.h"
#include "norma/ops/reduction_plan.h"
#include "norma/ops/rows.h"
#include "norma/ops/view.h"

namespace norma {

namespace {

using detail::accumulate_dtype;
using detail::expand_reduced;
using detail::ReductionPlan;

/// bool and integers are summed and multiplied in int64.
DType sum_dtype(DType dtype) { return is_floating_point(dtype) ? dtype : int64; }

void check_floating(const Tensor& input, const char* op) {
  check<DTypeError>(input.is_floating_point(), op,
                    "needs a floating-point tensor; got {}; convert with .to(float32)",
                    input.dtype());
}

struct Sum : Function<Sum> {
  static constexpr const char* name = "sum";
  static Tensor forward(Context& ctx, const Tensor& x, const ReductionPlan& plan) {
    ctx.set("plan", plan);
    return detail::run_reduce(ReduceOp::sum, x, plan, sum_dtype(x.dtype()));
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    return {expand_reduced(grad, ctx.get<ReductionPlan>("plan"))};
  }
};

struct Mean : Function<Mean> {
  static constexpr const char* name = "mean";
  static Tensor forward(Context& ctx, const Tensor& x, const ReductionPlan& plan) {
    ctx.set("plan", plan);
    // The sum itself may not fit a float16.
    const Tensor total = detail::run_reduce(ReduceOp::sum, x, plan, accumulate_dtype(x.dtype()));
    return to(div(total, static_cast<double>(plan.count)), x.dtype());
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    const ReductionPlan plan = ctx.get<ReductionPlan>("plan");
    return {expand_reduced(div(grad, static_cast<double>(plan.count)), plan)};
  }
};

double degrees_of_freedom(const ReductionPlan& plan, std::int64_t correction) {
  return static_cast<double>(std::max<std::int64_t>(plan.count - correction, 0));
}

Tensor run_variance(const Tensor& x, const ReductionPlan& plan, std::int64_t correction) {
  const detail::PackedReduction packed = detail::pack_reduction(x, plan);
  const TensorOptions options{.dtype = accumulate_dtype(x.dtype()), .device = x.device()};
  const Tensor means = empty(packed.kept, options);
  const Tensor variances = empty(packed.kept, options);
  backend(x).mean_variance(packed.x, packed.outer, packed.reduced, packed.inner, means, variances);
  const double scale = static_cast<double>(plan.count) / degrees_of_freedom(plan, correction);
  return mul(variances, scale).view(plan.out_shape);
}

/// scale * (x - mean(x)): the direction of the gradient of a variance.
Tensor centred(const Tensor& x, const ReductionPlan& plan) {
  return sub(x, mean(x, plan.dims, true));
}

struct Var : Function<Var> {
  static constexpr const char* name = "var";
  static Tensor forward(Context& ctx, const Tensor& x, const ReductionPlan& plan,
                        std::int64_t correction) {
    ctx.save_for_backward({x});
    ctx.set("plan", plan);
    ctx.set("freedom", degrees_of_freedom(plan, correction));
    return to(run_variance(x, plan, correction), x.dtype());
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    const ReductionPlan plan = ctx.get<ReductionPlan>("plan");
    const Tensor scaled = mul(grad, 2.0 / ctx.get<double>("freedom"));
    return {mul(expand_reduced(scaled, plan), centred(ctx.saved_tensor(0), plan))};
  }
};

struct Std : Function<Std> {
  static constexpr const char* name = "std";
  static Tensor forward(Context& ctx, const Tensor& x, const ReductionPlan& plan,
                        std::int64_t correction) {
    ctx.set("plan", plan);
    ctx.set("freedom", degrees_of_freedom(plan, correction));
    Tensor out = to(sqrt(run_variance(x, plan, correction)), x.dtype());
    ctx.save_for_backward({x, out});
    return out;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    const ReductionPlan plan = ctx.get<ReductionPlan>("plan");
    const Tensor out = ctx.saved_tensor(1);
    const Tensor constant = eq(out, 0.0);
    const Tensor scaled =
        div(grad, mul(masked_fill(out, constant, 1.0), ctx.get<double>("freedom")));
    return {mul(expand_reduced(masked_fill(scaled, constant, 0.0), plan),
                centred(ctx.saved_tensor(0), plan))};
  }
};

struct Prod : Function<Prod> {
  static constexpr const char* name = "prod";
  static Tensor forward(Context& ctx, const Tensor& x, const ReductionPlan& plan) {
    ctx.save_for_backward({x});
    ctx.set("plan", plan);
    return detail::run_reduce(ReduceOp::prod, x, plan, sum_dtype(x.dtype()));
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    const ReductionPlan plan = ctx.get<ReductionPlan>("plan");
    const Tensor x = ctx.saved_tensor(0);
    if (GradMode::is_enabled())
      return composite_backward(
          [&](const TensorList& inputs) -> TensorList {
            return {composite::prod(inputs[0], plan.dims).reshape(plan.out_shape)};
          },
          {x}, {grad});
    // The product of all others: of the non-zeros without this one, unless another element is zero.
    const Tensor is_zero = eq(x, 0.0);
    const Tensor nonzero = masked_fill(x, is_zero, 1.0);
    const Tensor product = prod(nonzero, plan.dims, true);
    const Tensor others_zero = sub(sum(is_zero, plan.dims, true), to(is_zero, int64));
    const Tensor others = masked_fill(div(product, nonzero), gt(others_zero, 0.0), 0.0);
    return {mul(expand_reduced(grad, plan), others)};
  }
};

struct Cumsum : Function<Cumsum> {
  static constexpr const char* name = "cumsum";
  static Tensor forward(Context& ctx, const Tensor& x, std::int64_t dim, bool reverse) {
    ctx.set("dim", dim);
    ctx.set("reverse", reverse);
    const Tensor source = x.contiguous();
    Tensor out = empty(x.shape(), {.dtype = sum_dtype(x.dtype()), .device = x.device()});
    if (x.numel() == 0) return out;
    std::int64_t outer = 1;
    for (std::int64_t d = 0; d < dim; ++d) outer *= x.shape()[d];
    const std::int64_t length = x.dim() == 0 ? 1 : x.shape()[dim];
    backend(x).cumsum(source, outer, length, x.numel() / (outer * length), reverse, out);
    return out;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    return {Cumsum::apply(grad, ctx.get<std::int64_t>("dim"), !ctx.get<bool>("reverse"))};
  }
};

struct LogSumExp : Function<LogSumExp> {
  static constexpr const char* name = "logsumexp";
  static Tensor forward(Context& ctx, const Tensor& x, const ReductionPlan& plan) {
    ctx.set("plan", plan);
    const Tensor wide = to(x, accumulate_dtype(x.dtype()));
    Tensor out;
    if (plan.count == 0) {
      out = log(sum(exp(wide), plan.dims, true));
    } else {
      // An infinite maximum must not meet itself in a difference.
      const Tensor largest = amax(wide, plan.dims, true);
      const Tensor shift = masked_fill(largest, logical_not(isfinite(largest)), 0.0);
      out = add(log(sum(exp(sub(wide, shift)), plan.dims, true)), shift);
    }
    out = to(out.view(plan.out_shape), x.dtype());
    ctx.save_for_backward({x, out});
    return out;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    const ReductionPlan plan = ctx.get<ReductionPlan>("plan");
    const Tensor softmax = exp(sub(ctx.saved_tensor(0), expand_reduced(ctx.saved_tensor(1), plan)));
    return {mul(expand_reduced(grad, plan), softmax)};
  }
};

struct VectorNorm : Function<VectorNorm> {
  static constexpr const char* name = "vector_norm";
  static Tensor forward(Context& ctx, const Tensor& x, const ReductionPlan& plan) {
    ctx.set("plan", plan);
    const Tensor wide = to(x, accumulate_dtype(x.dtype()));
    Tensor out = to(sqrt(sum(square(wide), plan.dims, true)).view(plan.out_shape), x.dtype());
    ctx.save_for_backward({x, out});
    return out;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    const ReductionPlan plan = ctx.get<ReductionPlan>("plan");
    const Tensor out = ctx.saved_tensor(1);
    const Tensor zero = eq(out, 0.0);
    const Tensor scale = masked_fill(div(grad, masked_fill(out, zero, 1.0)), zero, 0.0);
    return {mul(expand_reduced(scale, plan), ctx.saved_tensor(0))};
  }
};

}  // namespace

Tensor sum(const Tensor& input, const Shape& dims, bool keepdim) {
  return Sum::apply(input, ReductionPlan(input, dims, keepdim, "sum"));
}

Tensor mean(const Tensor& input, const Shape& dims, bool keepdim) {
  check_floating(input, "mean");
  return Mean::apply(input, ReductionPlan(input, dims, keepdim, "mean"));
}

Tensor var(const Tensor& input, const Shape& dims, std::int64_t correction, bool keepdim) {
  check_floating(input, "var");
  check<ValueError>(correction >= 0, "var", "correction must not be negative; got {}", correction);
  return Var::apply(input, ReductionPlan(input, dims, keepdim, "var"), correction);
}

Tensor std(const Tensor& input, const Shape& dims, std::int64_t correction, bool keepdim) {
  check_floating(input, "std");
  check<ValueError>(correction >= 0, "std", "correction must not be negative; got {}", correction);
  return Std::apply(input, ReductionPlan(input, dims, keepdim, "std"), correction);
}

Tensor prod(const Tensor& input, const Shape& dims, bool keepdim) {
  return Prod::apply(input, ReductionPlan(input, dims, keepdim, "prod"));
}

Tensor any(const Tensor& input, const Shape& dims, bool keepdim) {
  const NoGradGuard no_grad;
  return detail::run_reduce(ReduceOp::any, input, ReductionPlan(input, dims, keepdim, "any"),
                            bool_);
}

Tensor all(const Tensor& input, const Shape& dims, bool keepdim) {
  const NoGradGuard no_grad;
  return detail::run_reduce(ReduceOp::all, input, ReductionPlan(input, dims, keepdim, "all"),
                            bool_);
}

Tensor cumsum(const Tensor& input, std::int64_t dim) {
  return Cumsum::apply(input, normalize_dim(dim, input.dim(), "cumsum"), false);
}

Tensor logsumexp(const Tensor& input, const Shape& dims, bool keepdim) {
  check_floating(input, "logsumexp");
  return LogSumExp::apply(input, ReductionPlan(input, dims, keepdim, "logsumexp"));
}

Tensor vector_norm(const Tensor& input, const Shape& dims, bool keepdim) {
  check_floating(input, "vector_norm");
  return VectorNorm::apply(input, ReductionPlan(input, dims, keepdim, "vector_norm"));
}

Tensor sum_to_size(const Tensor& input, const Shape& shape) {
  check<ShapeError>(is_expandable_to(shape, input.shape()), "sum_to_size",
                    "the shape must broadcast to {}; got {}", input.shape(), shape);
  if (shape == input.shape()) return input;
  const std::int64_t added = input.dim() - shape.size();
  Shape dims;
  for (std::int64_t d = 0; d < input.dim(); ++d)
    if (d < added || (shape[d - added] == 1 && input.shape()[d] != 1)) dims.push_back(d);
  return sum(input, dims, true).reshape(shape);
}

namespace composite {

Tensor prod(const Tensor& input, const Shape& dims, bool keepdim) {
  const ReductionPlan plan(input, dims, keepdim, "prod");
  Shape order;
  for (std::int64_t d = 0; d < input.dim(); ++d)
    if (!plan.reduces(d)) order.push_back(d);
  const std::int64_t kept = order.size();
  for (const std::int64_t d : plan.dims) order.push_back(d);
  Tensor rest = permute(input, order);
  if (plan.dims.empty()) rest = unsqueeze(rest, 0);
  rest = flatten(rest, kept, -1);
  if (plan.count == 0)
    return ones(plan.out_shape, {.dtype = input.dtype(), .device = input.device()});
  while (rest.size(-1) > 1) {  // the first half times the second; an odd element waits
    const std::int64_t half = rest.size(-1) / 2;
    const Tensor product = mul(narrow(rest, -1, 0, half), narrow(rest, -1, half, half));
    rest = rest.size(-1) % 2 == 0 ? product : cat({product, narrow(rest, -1, 2 * half, 1)}, -1);
  }
  return rest.reshape(plan.out_shape);
}

Tensor logsumexp(const Tensor& input, const Shape& dims, bool keepdim) {
  return log(sum(exp(input), dims, keepdim));
}

}  // namespace composite

}  // namespace norma
