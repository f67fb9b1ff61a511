// Two gains on one normalized row, on the device (ops/backend.h).
#pragma once

#include "norma/cuda/kernels/row_norm.h"

namespace norma::cuda_kernels {

/// Rows of x as wide as weights and biases. Null stands for an absent tensor.
template <class T>
struct DualNormForward {
  RowNormShape shape;
  RowNormParams params;
  const T *x, *weight[2], *bias[2];
  T* out[2];
  statistic_t<T>*mean, *rstd;
};
template <class T>
struct DualNormBackward {
  RowNormShape shape;
  RowNormParams params;
  const T *x, *weight[2];
  const statistic_t<T>*mean, *rstd;
  const T* dy[2];
  T *dx, *dweight[2], *dbias[2];
  statistic_t<T>* workspace;  ///< dual_norm_workspace elements; not needed for dx alone
};
std::int64_t dual_norm_workspace(const RowNormShape& shape);

template <class T>
void dual_norm(const DualNormForward<T>& arguments, void* stream);
template <class T>
void dual_norm_backward(const DualNormBackward<T>& arguments, void* stream);

}  // namespace norma::cuda_kernels
