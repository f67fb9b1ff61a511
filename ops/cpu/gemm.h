// gemm: the matrix product on raw pointers, by the fastest library of this build.
//
// Inside a parallel region a call runs on its own thread; outside, on the whole OpenMP team.
#pragma once

#include "norma/core/tensor.h"

#include <cstdint>

namespace norma::cpu_kernels {

/// A row-major operand: element (i, j) is data[i * ld + j]; the product uses its transpose when
/// `transposed`.
template <class T>
struct Matrix {
  const T* data;
  std::int64_t ld;
  bool transposed = false;
};

/// c = alpha * op(a) op(b) + beta * c; c is [m, n] row-major with rows ldc apart, op(a) [m, k],
/// op(b) [k, n].
///
/// m, n and k may be 0. With beta = 0 whatever c held does not matter. float: the faster of
/// dnnl_sgemm (oneDNN) and cblas_sgemm; double: cblas_dgemm.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Matrix<float> a,
          Matrix<float> b, float beta, float* c, std::int64_t ldc);
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, Matrix<double> a,
          Matrix<double> b, double beta, double* c, std::int64_t ldc);

/// A contiguous float32 copy of a 16-bit tensor, for kernels that compute in float32; float32 stays
/// as it is.
Tensor widened(const Tensor& tensor);
/// A float32 tensor in which to compute `out`: out itself where it fits.
Tensor widened_output(const Tensor& out);
/// Rounds what was computed in widened_output() into `out`.
void narrow_into(const Tensor& computed, const Tensor& out);

}  // namespace norma::cpu_kernels
