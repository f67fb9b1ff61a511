// CPU kernel of the batched matrix product.
#include <omp.h>

#include "norma/ops/cpu/gemm.h"
#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"

namespace norma::cpu_kernels {

namespace {

/// [batch, rows, columns] operand: where a matrix of the batch starts, and its leading dimension.
struct Layout {
  explicit Layout(const Tensor& x)
      : rows(x.size(1)),
        columns(x.size(2)),
        // A single row has no next one; the libraries still want a sane distance.
        ld(rows > 1 ? x.stride(1) : std::max<std::int64_t>(columns, 1)),
        batch_stride(x.size(0) > 1 ? x.stride(0) : 0) {}
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t ld;
  std::int64_t batch_stride;
};

struct Sizes {
  std::int64_t batch, m, n, k;
};

template <class T>
void gemm_batched(const Sizes& s, bool transpose_a, bool transpose_b, double alpha, const Tensor& a,
                  const Tensor& b, double beta, const Tensor& c) {
  const Layout la(a), lb(b), lc(c);
  const T* const pa = a.data<T>();
  const T* const pb = b.data<T>();
  T* const pc = c.data<T>();
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      gemm(s.m, s.n, s.k, static_cast<T>(alpha),
           Matrix<T>{pa + i * la.batch_stride, la.ld, transpose_a},
           Matrix<T>{pb + i * lb.batch_stride, lb.ld, transpose_b}, static_cast<T>(beta),
           pc + i * lc.batch_stride, lc.ld);
  };
  // Many matrices: one thread each. Few: each on the library's threads.
  if (s.batch >= 2 * omp_get_max_threads())
    parallel_for(s.batch, s.m * s.n * s.k, run);
  else
    run(0, s.batch);
}

/// Integers: no library has them. Sums wrap around as in PyTorch, so they are formed in the
/// unsigned type.
template <class T>
void gemm_integer(const Sizes& s, bool transpose_a, bool transpose_b, double alpha, const Tensor& a,
                  const Tensor& b, double beta, const Tensor& c) {
  using U = std::make_unsigned_t<T>;
  const Layout la(a), lb(b), lc(c);
  const std::int64_t a_row = transpose_a ? 1 : la.ld, a_column = transpose_a ? la.ld : 1;
  const std::int64_t b_row = transpose_b ? 1 : lb.ld, b_column = transpose_b ? lb.ld : 1;
  const U scale = static_cast<U>(static_cast<T>(alpha)),
          keep = static_cast<U>(static_cast<T>(beta));
  const T* const pa = a.data<T>();
  const T* const pb = b.data<T>();
  T* const pc = c.data<T>();
  parallel_for(s.batch * s.m, s.n * s.k, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t i = row / s.m, r = row % s.m;
      const T* const a_data = pa + i * la.batch_stride + r * a_row;
      const T* const b_data = pb + i * lb.batch_stride;
      T* const c_data = pc + i * lc.batch_stride + r * lc.ld;
      for (std::int64_t j = 0; j < s.n; ++j)
        c_data[j] = static_cast<T>(keep == 0 ? U{0} : keep * static_cast<U>(c_data[j]));
      for (std::int64_t l = 0; l < s.k; ++l) {
        const U factor = scale * static_cast<U>(a_data[l * a_column]);
        for (std::int64_t j = 0; j < s.n; ++j)
          c_data[j] = static_cast<T>(static_cast<U>(c_data[j]) +
                                     factor * static_cast<U>(b_data[l * b_row + j * b_column]));
      }
    }
  });
}

void gemm_kernel(bool transpose_a, bool transpose_b, double alpha, const Tensor& a, const Tensor& b,
                 double beta, const Tensor& c) {
  const Sizes sizes{c.size(0), c.size(1), c.size(2), transpose_a ? a.size(1) : a.size(2)};
  if (c.numel() == 0) return;
  switch (c.dtype()) {
    case DType::float32:
      return gemm_batched<float>(sizes, transpose_a, transpose_b, alpha, a, b, beta, c);
    case DType::float64:
      return gemm_batched<double>(sizes, transpose_a, transpose_b, alpha, a, b, beta, c);
    case DType::float16:
    case DType::bfloat16: {
      const Tensor wide_c = beta == 0.0 ? widened_output(c) : widened(c);
      gemm_batched<float>(sizes, transpose_a, transpose_b, alpha, widened(a), widened(b), beta,
                          wide_c);
      return narrow_into(wide_c, c);
    }
    case DType::int32:
      return gemm_integer<std::int32_t>(sizes, transpose_a, transpose_b, alpha, a, b, beta, c);
    case DType::int64:
      return gemm_integer<std::int64_t>(sizes, transpose_a, transpose_b, alpha, a, b, beta, c);
    case DType::bool_:
      break;
  }
  throw DTypeError("gemm", "needs numbers; got bool; convert with .to(int64)");
}

}  // namespace

void add_matmul_kernels(Backend& table) { table.gemm = gemm_kernel; }

}  // namespace norma::cpu_kernels
