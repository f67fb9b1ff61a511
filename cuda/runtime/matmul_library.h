// The matrix product library of the device. Two files implement it: cublaslt_driver.cpp by
// cuBLASLt, emulated_driver.cpp by none.
#pragma once

#include "norma/core/dtype.h"

#include <cstdint>

namespace norma::cuda_kernels::driver {

/// One row-major operand: element (i, j) is data[i * ld + j]; the product uses its transpose when
/// `transposed`. Matrices of a batch are `batch` apart.
struct MatmulOperand {
  const void* data;
  std::int64_t ld, batch;
  bool transposed;
};

/// c[m, n] = alpha op(a) op(b) + beta c + bias, for each of `batch` matrices; bias [n] or null.
struct MatmulCall {
  DType dtype;
  std::int64_t batch, m, n, k;
  double alpha, beta;
  MatmulOperand a, b;
  const void* bias;
  void* c;
  std::int64_t c_ld, c_batch;
};

/// Whether the library did it. It did not where this machine has none, or it has no algorithm for
/// the call (integers; odd addresses): then the kernel of this project does (cuda/kernels/gemm.h).
bool library_matmul(const MatmulCall& call, void* stream);

}  // namespace norma::cuda_kernels::driver
