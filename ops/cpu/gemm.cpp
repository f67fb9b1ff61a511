#include "norma/ops/cpu/gemm.h"

#include <cblas.h>
#ifdef NORMA_HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>
#endif

#include <algorithm>
#include <limits>

#include "norma/core/factory.h"
#include "norma/core/required_ops.h"

namespace norma::cpu_kernels {

namespace {

/// Products without a sum: c = beta * c. True when that was all.
template <class T>
bool gemm_is_trivial(std::int64_t m, std::int64_t n, std::int64_t k, T beta, T* c,
                     std::int64_t ldc) {
  if (m == 0 || n == 0) return true;
  if (k > 0) return false;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      c[i * ldc + j] = beta == T{0} ? T{0} : beta * c[i * ldc + j];
  return true;
}

/// CBLAS counts in int (LP64 builds).
int blas_int(std::int64_t value) {
  check<ShapeError>(value <= std::numeric_limits<int>::max(), "gemm",
                    "matrix sizes must fit into the integers of CBLAS; got {}", value);
  return static_cast<int>(value);
}

CBLAS_TRANSPOSE blas_transpose(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

}  // namespace

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Matrix<float> a,
          Matrix<float> b, float beta, float* c, std::int64_t ldc) {
  if (gemm_is_trivial(m, n, k, beta, c, ldc)) return;
#ifdef NORMA_HAVE_DNNL
  const dnnl_status_t status = dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n,
                                          k, alpha, a.data, a.ld, b.data, b.ld, beta, c, ldc);
  check<Error>(status == dnnl_success, "gemm",
               "oneDNN must compute [{}, {}] = [{}, {}] [{}, {}]; got status {}; free memory, or "
               "build without oneDNN",
               m, n, m, k, k, n, static_cast<int>(status));
#else
  cblas_sgemm(CblasRowMajor, blas_transpose(a.transposed), blas_transpose(b.transposed),
              blas_int(m), blas_int(n), blas_int(k), alpha, a.data, blas_int(a.ld), b.data,
              blas_int(b.ld), beta, c, blas_int(ldc));
#endif
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, Matrix<double> a,
          Matrix<double> b, double beta, double* c, std::int64_t ldc) {
  if (gemm_is_trivial(m, n, k, beta, c, ldc)) return;
  cblas_dgemm(CblasRowMajor, blas_transpose(a.transposed), blas_transpose(b.transposed),
              blas_int(m), blas_int(n), blas_int(k), alpha, a.data, blas_int(a.ld), b.data,
              blas_int(b.ld), beta, c, blas_int(ldc));
}

Tensor widened(const Tensor& tensor) {
  if (!tensor.defined() || tensor.dtype() == float32) return tensor;
  const Tensor wide = empty(tensor.shape(), {.dtype = float32});
  detail::copy(wide, tensor);
  return wide;
}

Tensor widened_output(const Tensor& out) {
  if (!out.defined() || out.dtype() == float32) return out;
  return empty(out.shape(), {.dtype = float32});
}

void narrow_into(const Tensor& computed, const Tensor& out) {
  if (out.defined() && !computed.is_same(out)) detail::copy(out, computed);
}

}  // namespace norma::cpu_kernels
