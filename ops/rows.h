// Tensors as rows, for operations along the last dimension. For ops/*.cpp only.
#pragma once

#include "norma/core/tensor.h"

namespace norma::detail {

/// A contiguous tensor as [rows, width], where `width` is the size of its last `dims` dimensions
/// together. Off the tape: shares storage, has no history.
inline Tensor as_rows(const Tensor& x, std::int64_t dims = 1) {
  if (!x.defined()) return x;
  std::int64_t rows = 1;
  std::int64_t width = 1;
  for (std::int64_t i = 0; i < x.dim(); ++i) (i < x.dim() - dims ? rows : width) *= x.shape()[i];
  return x.detach().view({rows, width});
}

/// 16-bit floats as float32, others as they are: what a composite twin computes in.
inline Tensor in_accumulate_type(const Tensor& x) {
  if (!x.defined()) return x;
  return x.dtype() == float16 || x.dtype() == bfloat16 ? x.to(float32) : x;
}
/// The dtype of sums and statistics of x.
inline DType accumulate_dtype(DType dtype) { return dtype == float64 ? float64 : float32; }

}  // namespace norma::detail
