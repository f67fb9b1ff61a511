#include "norma/ops/reduction_plan.h"

#include "norma/core/factory.h"
#include "norma/ops/view.h"

namespace norma::detail {

ReductionPlan::ReductionPlan(const Tensor& input, const Shape& dims_in, bool keepdim,
                             const char* op)
    : in_shape(input.shape()) {
  const std::int64_t rank = input.dim();
  Shape named = Shape::filled(rank, dims_in.empty() ? 1 : 0);
  for (const std::int64_t dim : dims_in) {
    const std::int64_t d = normalize_dim(dim, rank, op);
    if (rank == 0) continue;  // a scalar takes 0 and -1
    check<ValueError>(named[d] == 0, op, "each dimension may be named once; got {}", dims_in);
    named[d] = 1;
  }
  for (std::int64_t d = 0; d < rank; ++d) {
    const bool reduced = named[d] == 1;
    if (reduced) {
      dims.push_back(d);
      count *= in_shape[d];
    }
    kept_shape.push_back(reduced ? 1 : in_shape[d]);
    if (!reduced || keepdim) out_shape.push_back(kept_shape[d]);
  }
}

bool ReductionPlan::reduces(std::int64_t dim) const {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

PackedReduction pack_reduction(const Tensor& x, const ReductionPlan& plan) {
  PackedReduction packed;
  for (std::int64_t d = 0; d < x.dim(); ++d)
    if (!plan.reduces(d)) packed.kept.push_back(x.shape()[d]);
  packed.reduced = plan.count;
  const bool adjacent =
      plan.dims.empty() || plan.dims.back() - plan.dims[0] + 1 == plan.dims.size();
  if (adjacent) {
    const std::int64_t first = plan.dims.empty() ? x.dim() : plan.dims[0];
    for (std::int64_t d = 0; d < first; ++d) packed.outer *= x.shape()[d];
    for (std::int64_t d = first + plan.dims.size(); d < x.dim(); ++d) packed.inner *= x.shape()[d];
    packed.x = contiguous(x);
    return packed;
  }
  Shape order;
  for (std::int64_t d = 0; d < x.dim(); ++d)
    if (!plan.reduces(d)) order.push_back(d);
  for (const std::int64_t d : plan.dims) order.push_back(d);
  packed.outer = packed.kept.numel();
  packed.x = contiguous(permute(x, order));
  return packed;
}

Tensor run_reduce(ReduceOp op, const Tensor& x, const ReductionPlan& plan, DType dtype) {
  const PackedReduction packed = pack_reduction(x, plan);
  Tensor out = empty(plan.out_shape, {.dtype = dtype, .device = x.device()});
  if (out.numel() > 0)
    backend(x).reduce(op, packed.x, packed.outer, packed.reduced, packed.inner, out);
  return out;
}

Tensor expand_reduced(const Tensor& tensor, const ReductionPlan& plan) {
  return expand(reshape(tensor, plan.kept_shape), plan.in_shape);
}

}  // namespace norma::detail
