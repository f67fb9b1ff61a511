// PolyNorm on the device: w0 n(x^3) + w1 n(x^2) + w2 n(x) + bias, n(u) = u / sqrt(mean(u^2) + eps).
#pragma once

#include "norma/cuda/kernels/row_norm.h"

namespace norma::cuda_kernels {

/// weight [3], bias [1], rstd [rows, 3]. Null stands for an absent tensor.
template <class T>
struct PolyNormForward {
  std::int64_t rows, width;
  double eps;
  const T *x, *weight, *bias;
  T* out;
  statistic_t<T>* rstd;
};
template <class T>
struct PolyNormBackward {
  std::int64_t rows, width;
  const T *x, *weight;
  const statistic_t<T>* rstd;
  const T* dy;
  T *dx, *dweight, *dbias;
  statistic_t<T>* workspace;  ///< poly_norm_workspace elements; not needed for dx alone
};
std::int64_t poly_norm_workspace(std::int64_t rows);

template <class T>
void poly_norm(const PolyNormForward<T>& arguments, void* stream);
template <class T>
void poly_norm_backward(const PolyNormBackward<T>& arguments, void* stream);

}  // namespace norma::cuda_kernels
