#include "norma/cuda/kernels/gemm.h"

#include "norma/cuda/kernels/element.cuh"

#include <algorithm>

namespace norma::cuda_kernels {

namespace {

/// A block computes tile x tile elements of c, a thread per_thread x per_thread of them: each
/// number that it reads from shared memory serves per_thread products.
constexpr int tile = 64;
constexpr int depth = 16;
constexpr int side = 16;  ///< threads along a side of the tile
constexpr int threads = side * side;
constexpr int per_thread = tile / side;
constexpr int pitch = tile + 1;  ///< of a slice: not a multiple of the 32 banks

/// What is summed: integers without a sign, for they wrap around.
template <class T>
using sum_t = std::conditional_t<std::is_integral_v<T>, std::uint64_t, compute_t<T>>;

/// slice[l * pitch + i] = x[first + i, start + l], 0 beyond the ends. Neighbouring threads read
/// along the side whose elements are adjacent.
template <class S, class T>
__device__ __forceinline__ void load_slice(const T* x, const GemmFactor& f, std::int64_t first,
                                           std::int64_t count, std::int64_t start, std::int64_t k,
                                           S* slice) {
  NORMA_UNROLL
  for (int e = static_cast<int>(threadIdx.x); e < tile * depth; e += threads) {
    const int i = f.depth == 1 ? e / depth : e % tile;
    const int l = f.depth == 1 ? e % depth : e / tile;
    const bool inside = first + i < count && start + l < k;
    slice[l * pitch + i] = inside ? static_cast<S>(element<compute_t<T>>(
                                        x[(first + i) * f.outer + (start + l) * f.depth]))
                                  : S(0);
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    gemm_kernel(GemmShape s, std::int64_t tiles_m, std::int64_t tiles_n, sum_t<T> alpha, const T* a,
                const T* b, sum_t<T> beta, const T* bias, T* c) {
  using S = sum_t<T>;
  NORMA_SHARED(S, a_slice, depth * pitch);
  NORMA_SHARED(S, b_slice, depth * pitch);
  const int column = static_cast<int>(threadIdx.x) % side;
  const int row = static_cast<int>(threadIdx.x) / side;
  for (std::int64_t work = blockIdx.x; work < s.batch * tiles_m * tiles_n; work += gridDim.x) {
    const std::int64_t matrix = work / (tiles_m * tiles_n);
    const std::int64_t first_m = work / tiles_n % tiles_m * tile;
    const std::int64_t first_n = work % tiles_n * tile;
    S sums[per_thread][per_thread] = {};
    for (std::int64_t start = 0; start < s.k; start += depth) {
      load_slice(a + matrix * s.a.batch, s.a, first_m, s.m, start, s.k, a_slice);
      load_slice(b + matrix * s.b.batch, s.b, first_n, s.n, start, s.k, b_slice);
      __syncthreads();
      NORMA_UNROLL
      for (int l = 0; l < depth; ++l) {
        S from_a[per_thread], from_b[per_thread];
        NORMA_UNROLL
        for (int r = 0; r < per_thread; ++r) {
          from_a[r] = a_slice[l * pitch + row + r * side];
          from_b[r] = b_slice[l * pitch + column + r * side];
        }
        NORMA_UNROLL
        for (int r = 0; r < per_thread; ++r) {
          NORMA_UNROLL
          for (int q = 0; q < per_thread; ++q) sums[r][q] += from_a[r] * from_b[q];
        }
      }
      __syncthreads();
    }
    NORMA_UNROLL
    for (int r = 0; r < per_thread; ++r) {
      NORMA_UNROLL
      for (int q = 0; q < per_thread; ++q) {
        const std::int64_t i = first_m + row + r * side, j = first_n + column + q * side;
        if (i >= s.m || j >= s.n) continue;
        T& out = c[matrix * s.c_batch + i * s.c_row + j];
        S value = alpha * sums[r][q];
        if (beta != S(0)) value += beta * static_cast<S>(element<compute_t<T>>(out));
        if (bias != nullptr) value += static_cast<S>(element<compute_t<T>>(bias[j]));
        out = element<T>(static_cast<compute_t<T>>(value));
      }
    }
  }
}

}  // namespace

template <class T>
void gemm(const GemmShape& shape, double alpha, const T* a, const T* b, double beta, const T* bias,
          T* c, void* stream) {
  const std::int64_t tiles_m = (shape.m + tile - 1) / tile, tiles_n = (shape.n + tile - 1) / tile;
  const std::int64_t work = shape.batch * tiles_m * tiles_n;
  if (work == 0) return;
  const auto factor = [](double value) {
    return static_cast<sum_t<T>>(static_cast<compute_t<T>>(value));
  };
  device::launch({.name = "gemm",
                  .grid = {static_cast<unsigned>(std::min<std::int64_t>(work, 0x7fffffff))},
                  .block = {threads},
                  .stream = stream},
                 gemm_kernel<T>, shape, tiles_m, tiles_n, factor(alpha), a, b, factor(beta), bias,
                 c);
}

#define NORMA_GEMM(T) \
  template void gemm<T>(const GemmShape&, double, const T*, const T*, double, const T*, T*, void*);
NORMA_FOR_FLOATING_TYPES(NORMA_GEMM)
NORMA_GEMM(std::int32_t)
NORMA_GEMM(std::int64_t)

}  // namespace norma::cuda_kernels
