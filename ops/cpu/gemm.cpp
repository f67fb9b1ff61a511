#include "norma/ops/cpu/gemm.h"

#include <cblas.h>
#ifdef NORMA_HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>
#endif

#include <algorithm>
#include <limits>

#include "norma/core/factory.h"
#include "norma/core/required_ops.h"
#include "norma/ops/cpu/parallel.h"

// OpenBLAS only; null with another CBLAS.
extern "C" [[gnu::weak]] char* openblas_get_config();

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

void blas_gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Matrix<float> a,
               Matrix<float> b, float beta, float* c, std::int64_t ldc) {
  cblas_sgemm(CblasRowMajor, blas_transpose(a.transposed), blas_transpose(b.transposed),
              blas_int(m), blas_int(n), blas_int(k), alpha, a.data, blas_int(a.ld), b.data,
              blas_int(b.ld), beta, c, blas_int(ldc));
}

#ifdef NORMA_HAVE_DNNL

void dnnl_gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Matrix<float> a,
               Matrix<float> b, float beta, float* c, std::int64_t ldc) {
  const dnnl_status_t status = dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n,
                                          k, alpha, a.data, a.ld, b.data, b.ld, beta, c, ldc);
  check<Error>(status == dnnl_success, "gemm",
               "oneDNN must compute [{}, {}] = [{}, {}] [{}, {}]; got status {}; free memory, or "
               "build without oneDNN",
               m, n, m, k, k, n, static_cast<int>(status));
}

bool has_openblas() { return &openblas_get_config != nullptr; }
bool dnnl_has_avx512() {
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
}

/// Whether OpenBLAS is faster than oneDNN: by up to two times for a weight gradient, whose sums are
/// long, where oneDNN has no AVX-512 (benchmarks/NOTES.md).
bool is_for_openblas(const Matrix<float>& a, std::int64_t m, std::int64_t n, std::int64_t k) {
  static const bool faster = has_openblas() && !dnnl_has_avx512();
  return faster && a.transposed && m >= 64 && n >= 64 && k >= 512;
}

/// Whether the columns that oneDNN gathers from a transposed `a` fall into few sets of the cache,
/// because its rows lie a multiple of 4 KiB apart: the product then runs at less than half speed
/// (weight gradients of wide layers).
bool has_aliasing_rows(const Matrix<float>& a, std::int64_t m, std::int64_t k) {
  return a.transposed && a.ld % 1024 == 0 && m >= 64 && k >= 64;
}

/// The product with a copy of `a`, by blocks, in which rows lie a little further apart.
void dnnl_gemm_unaliased(std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                         Matrix<float> a, Matrix<float> b, float beta, float* c, std::int64_t ldc) {
  constexpr std::int64_t block_k = 512, block_m = 1024, gap = 16;
  const std::int64_t ld = std::min(m, block_m) + gap;
  const Tensor buffer = empty({std::min(k, block_k), ld}, {.dtype = float32});
  float* const copy = buffer.data<float>();
  for (std::int64_t i = 0; i < m; i += block_m) {
    const std::int64_t columns = std::min(block_m, m - i);
    for (std::int64_t l = 0; l < k; l += block_k) {
      const std::int64_t rows = std::min(block_k, k - l);
      parallel_for(rows, columns, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row)
          std::copy_n(a.data + (l + row) * a.ld + i, columns, copy + row * ld);
      });
      const Matrix<float> rest{b.data + (b.transposed ? l : l * b.ld), b.ld, b.transposed};
      dnnl_gemm(columns, n, rows, alpha, {copy, ld, true}, rest, l == 0 ? beta : 1.0F, c + i * ldc,
                ldc);
    }
  }
}

#endif

}  // namespace

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Matrix<float> a,
          Matrix<float> b, float beta, float* c, std::int64_t ldc) {
  if (gemm_is_trivial(m, n, k, beta, c, ldc)) return;
#ifdef NORMA_HAVE_DNNL
  if (is_for_openblas(a, m, n, k))
    blas_gemm(m, n, k, alpha, a, b, beta, c, ldc);
  else if (has_aliasing_rows(a, m, k))
    dnnl_gemm_unaliased(m, n, k, alpha, a, b, beta, c, ldc);
  else
    dnnl_gemm(m, n, k, alpha, a, b, beta, c, ldc);
#else
  blas_gemm(m, n, k, alpha, a, b, beta, c, ldc);
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
