// The row norms on the device: what a launch takes. ops/norm_params.h says what is computed.
#pragma once

#include "norma/ops/norm_params.h"

#include <cstdint>
#include <type_traits>

namespace norma::cuda_kernels {

/// Type of statistics and sums.
template <class T>
using statistic_t = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Shapes: rows of x, and weight and bias as [weight_rows, columns]; columns divide the width.
struct RowNormShape {
  std::int64_t rows = 0, width = 0;
  std::int64_t weight_rows = 1, columns = 1;
  constexpr std::int64_t segment() const { return columns > 0 ? width / columns : 1; }
};

/// Pointers to contiguous device memory; null stands for an absent tensor.
template <class T>
struct RowNormForward {
  RowNormShape shape;
  RowNormParams params;
  const T *x, *residual, *weight, *bias;
  T *out, *sum;
  statistic_t<T>*mean, *rstd;
};
template <class T>
struct RowNormBackward {
  RowNormShape shape;
  RowNormParams params;
  const T *x, *weight;
  const statistic_t<T>*mean, *rstd;
  const T *dy, *dsum;
  T *dx, *dresidual, *dweight, *dbias;
  statistic_t<T>*
      workspace;  ///< workspace_elements (row_norm_plan.h); not needed without dweight and dbias
};

// Without rows or without width nothing is launched but the zeros of dweight and dbias.
template <class T>
void row_norm_forward(const RowNormForward<T>& arguments, void* stream);
template <class T>
void row_norm_backward(const RowNormBackward<T>& arguments, void* stream);

}  // namespace norma::cuda_kernels
