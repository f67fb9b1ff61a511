// Element-wise norms on the device: DyT, Derf, LayerScale, head scale.
#pragma once

#include "norma/cuda/kernels/row_norm.h"

namespace norma::cuda_kernels {

/// x [rows, width]; alpha, shift [1]; weight, bias [columns], columns a divisor of the width. Null
/// stands for an absent tensor. `weight_rows` of the shape is 1.
template <class T>
struct SquashForward {
  Squash curve;
  RowNormShape shape;
  const T *x, *alpha, *shift, *weight, *bias;
  T* out;
};
template <class T>
struct SquashBackward {
  Squash curve;
  RowNormShape shape;
  const T *x, *alpha, *shift, *weight, *dy;
  T *dx, *dalpha, *dshift, *dweight, *dbias;
  statistic_t<T>* workspace;  ///< squash_workspace elements; not needed for dx alone
};
/// For any alignment of the pointers.
std::int64_t squash_workspace(const RowNormShape& shape);

template <class T>
void squash(const SquashForward<T>& arguments, void* stream);
template <class T>
void squash_backward(const SquashBackward<T>& arguments, void* stream);

}  // namespace norma::cuda_kernels
