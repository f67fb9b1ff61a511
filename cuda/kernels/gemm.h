// The matrix product on the device, for every type: what no library does, or is not there to do.
#pragma once

#include <cstdint>

namespace norma::cuda_kernels {

/// Distances of a factor's elements: along the side that it shares with the product, along the side
/// that is summed, and from matrix to matrix of the batch.
struct GemmFactor {
  std::int64_t outer, depth, batch;
};

/// c[m, n] = sum over k of a b, `batch` times; c has rows `c_row` and matrices `c_batch` apart.
struct GemmShape {
  std::int64_t batch, m, n, k;
  GemmFactor a, b;
  std::int64_t c_row, c_batch;
};

/// c = alpha a b + beta c + bias, bias [n] or null; with beta = 0 whatever c held does not matter.
/// Sums in float for 16-bit types and float, in double for double; integers wrap around. In a
/// fixed order.
template <class T>
void gemm(const GemmShape& shape, double alpha, const T* a, const T* b, double beta, const T* bias,
          T* c, void* stream);

}  // namespace norma::cuda_kernels
