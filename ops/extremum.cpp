// amax, amin, max, min, argmax, argmin (declared in ops/reduction.h).
#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/ops/backend.h"
#include "norma/ops/cast.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/index.h"
#include "norma/ops/reduction.h"
#include "norma/ops/reduction_plan.h"
#include "norma/ops/rows.h"
#include "norma/ops/view.h"

namespace norma {

namespace {

using detail::expand_reduced;
using detail::ReductionPlan;

ReductionPlan plan_extremum(const Tensor& input, const Shape& dims, bool keepdim, const char* op) {
  ReductionPlan plan(input, dims, keepdim, op);
  check<ShapeError>(plan.count > 0, op,
                    "the reduced dimensions {} must have elements; got shape {}", plan.dims,
                    input.shape());
  return plan;
}

/// Base of amax and amin.
template <class Self>
struct Extremum : Function<Self> {
  static Tensor forward(Context& ctx, const Tensor& x, const ReductionPlan& plan) {
    ctx.set("plan", plan);
    Tensor out = detail::run_reduce(Self::op, x, plan, x.dtype());
    ctx.save_for_backward({x, out});
    return out;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    const ReductionPlan plan = ctx.get<ReductionPlan>("plan");
    const Tensor x = ctx.saved_tensor(0);
    const Tensor hit = to(eq(x, expand_reduced(ctx.saved_tensor(1), plan)), x.dtype());
    // The product with 0 or 1 is exact, and the count is not rounded to 16 bits (nor infinite), so
    // the gradient is rounded once.
    const Tensor count = sum(to(hit, detail::accumulate_dtype(x.dtype())), plan.dims, true);
    return {to(div(mul(expand_reduced(grad, plan), hit), count), x.dtype())};
  }
};
struct Amax : Extremum<Amax> {
  static constexpr const char* name = "amax";
  static constexpr ReduceOp op = ReduceOp::amax;
};
struct Amin : Extremum<Amin> {
  static constexpr const char* name = "amin";
  static constexpr ReduceOp op = ReduceOp::amin;
};

Tensor run_argreduce(bool largest, const Tensor& x, const ReductionPlan& plan) {
  const detail::PackedReduction packed = detail::pack_reduction(x, plan);
  Tensor out = empty(plan.out_shape, {.dtype = int64, .device = x.device()});
  if (out.numel() > 0)
    backend(x).argreduce(largest, packed.x, packed.outer, packed.reduced, packed.inner, out);
  return out;
}

/// Values and indices over one dimension.
template <class Self>
struct ExtremumAt : Function<Self> {
  static TensorList forward(Context& ctx, const Tensor& x, const ReductionPlan& plan) {
    ctx.set("plan", plan);
    const Tensor indices = run_argreduce(Self::largest, x, plan);
    // A scalar is its own extremum.
    const Tensor values =
        plan.dims.empty()
            ? clone(x)
            : gather(x, plan.dims[0], indices.view(plan.kept_shape)).view(plan.out_shape);
    ctx.save_for_backward({indices});
    ctx.mark_non_differentiable({indices});
    return {values, indices};
  }
  static TensorList backward(Context& ctx, const TensorList& grads) {
    const ReductionPlan plan = ctx.get<ReductionPlan>("plan");
    if (plan.dims.empty()) return {grads[0]};
    const Tensor zero =
        zeros(plan.in_shape, {.dtype = grads[0].dtype(), .device = grads[0].device()});
    return {scatter_add(zero, plan.dims[0], reshape(ctx.saved_tensor(0), plan.kept_shape),
                        reshape(grads[0], plan.kept_shape))};
  }
};
struct MaxAt : ExtremumAt<MaxAt> {
  static constexpr const char* name = "max";
  static constexpr bool largest = true;
};
struct MinAt : ExtremumAt<MinAt> {
  static constexpr const char* name = "min";
  static constexpr bool largest = false;
};

Tensor arg_extremum(bool largest, const Tensor& input, const Shape& dims, bool keepdim,
                    const char* op) {
  const NoGradGuard no_grad;
  return run_argreduce(largest, input, plan_extremum(input, dims, keepdim, op));
}

}  // namespace

Tensor amax(const Tensor& input, const Shape& dims, bool keepdim) {
  return Amax::apply(input, plan_extremum(input, dims, keepdim, "amax"));
}

Tensor amin(const Tensor& input, const Shape& dims, bool keepdim) {
  return Amin::apply(input, plan_extremum(input, dims, keepdim, "amin"));
}

Tensor max(const Tensor& input) {
  return Amax::apply(input, plan_extremum(input, {}, false, "max"));
}

Tensor min(const Tensor& input) {
  return Amin::apply(input, plan_extremum(input, {}, false, "min"));
}

ValuesAndIndices max(const Tensor& input, std::int64_t dim, bool keepdim) {
  const TensorList result = MaxAt::apply(input, plan_extremum(input, {dim}, keepdim, "max"));
  return {result[0], result[1]};
}

ValuesAndIndices min(const Tensor& input, std::int64_t dim, bool keepdim) {
  const TensorList result = MinAt::apply(input, plan_extremum(input, {dim}, keepdim, "min"));
  return {result[0], result[1]};
}

Tensor argmax(const Tensor& input) { return arg_extremum(true, input, {}, false, "argmax"); }
Tensor argmax(const Tensor& input, std::int64_t dim, bool keepdim) {
  return arg_extremum(true, input, {dim}, keepdim, "argmax");
}
Tensor argmin(const Tensor& input) { return arg_extremum(false, input, {}, false, "argmin"); }
Tensor argmin(const Tensor& input, std::int64_t dim, bool keepdim) {
  return arg_extremum(false, input, {dim}, keepdim, "argmin");
}

}  // namespace norma
