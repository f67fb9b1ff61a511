// What the reductions share: which dimensions go, and how a tensor becomes [outer, reduced, inner].
#pragma once

#include "norma/core/tensor.h"
#include "norma/ops/backend.h"

namespace norma::detail {

/// One reduction, validated.
struct ReductionPlan {
  /// Throws IndexError or ValueError in the name of `op`. An empty list means all dimensions.
  ReductionPlan(const Tensor& input, const Shape& dims, bool keepdim, const char* op);

  bool reduces(std::int64_t dim) const;

  Shape in_shape;
  Shape dims;              ///< ascending, not negative
  Shape kept_shape;        ///< with size 1 for reduced dimensions
  Shape out_shape;         ///< what the caller gets
  std::int64_t count = 1;  ///< elements in each slice
};

/// A contiguous tensor seen as [outer, reduced, inner], and the sizes that stay.
struct PackedReduction {
  Tensor x;
  std::int64_t outer = 1;
  std::int64_t reduced = 1;
  std::int64_t inner = 1;
  Shape kept;  ///< sizes of the dimensions that stay, in order
};

/// Brings the reduced dimensions together, by a copy only where other dimensions stand between
/// them.
PackedReduction pack_reduction(const Tensor& x, const ReductionPlan& plan);

/// Runs the kernel; off the tape. `dtype`: of the result.
Tensor run_reduce(ReduceOp op, const Tensor& x, const ReductionPlan& plan, DType dtype);

/// A tensor of the result's shape, repeated along the reduced dimensions. Differentiable.
Tensor expand_reduced(const Tensor& tensor, const ReductionPlan& plan);

}  // namespace norma::detail
