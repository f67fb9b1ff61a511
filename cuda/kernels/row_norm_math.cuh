// The formulas of the row norms that all their kernels share (ops/norm_params.h).
#pragma once

#include "norma/cuda/kernels/math.cuh"
#include "norma/cuda/kernels/row_norm.h"
#include "norma/cuda/philox.cuh"

namespace norma::cuda_kernels {

using device::convert;
using device::dropout_scale;
using device::DropoutMask;

/// Mean and its rounding error (0 where not centred; the sum of x where compressed), and 1 / D.
template <class C>
struct RowStatistics {
  C mean, rest, rstd;
};

/// 1 / D from the mean of squares.
template <class C>
__device__ __forceinline__ C reciprocal_divisor(C mean_square, const RowNormParams& p) {
  const C eps = static_cast<C>(p.eps);
  if (p.eps_rule == EpsRule::inside) return C(1) / DeviceMath::sqrt(mean_square + eps);
  const C root = DeviceMath::sqrt(mean_square);
  if (p.eps_rule == EpsRule::outside) return C(1) / (root + eps);
  return C(1) / (root > eps ? root : eps);
}

/// G c / r: how much of v is taken from g.
template <class C>
__device__ __forceinline__ C projection(C sum_gh, C r, const RowNormParams& p) {
  const C share = sum_gh / static_cast<C>(p.divisor);
  if (p.eps_rule == EpsRule::inside) return share;
  const C eps = static_cast<C>(p.eps);
  if (p.eps_rule == EpsRule::floor) return r * eps < C(1) ? share : C(0);
  const C root = C(1) / r - eps;
  return root > C(0) ? share / (root * r) : C(0);
}

/// What becomes of h before gain and shift: Llama's rounding, AdaNorm's factor.
template <class T, bool general, class C>
__device__ __forceinline__ C shaped(C h, const RowNormParams& p) {
  if (p.round_normalized) h = convert<C>(convert<T>(h));
  if (general && p.detached_slope != 0.0) h *= C(1) - static_cast<C>(p.detached_slope) * h;
  return h;
}

/// Gain of a weight; without one the gain is scale alone.
template <class C>
__device__ __forceinline__ C gain_of(C weight, const RowNormParams& p) {
  return static_cast<C>(p.scale) * (static_cast<C>(p.weight_offset) + weight);
}

/// Offset of the row of [weight_rows, columns] that serves `row`.
__device__ __forceinline__ std::int64_t weight_row_offset(std::int64_t row, const RowNormShape& s,
                                                          const RowNormParams& p) {
  return row / p.weight_repeat % s.weight_rows * s.columns;
}

}  // namespace norma::cuda_kernels
