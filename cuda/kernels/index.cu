#include "norma/cuda/kernels/index.h"

#include "norma/cuda/kernels/element.cuh"
#include "norma/cuda/kernels/loop.cuh"
#include "norma/cuda/kernels/sort.h"
#include "norma/cuda/kernels/sums.cuh"

namespace norma::cuda_kernels {

namespace {

template <class Unit>
__global__ void embedding_kernel(const Unit* table, const std::int64_t* index, std::int64_t count,
                                 std::int64_t width, Unit* out) {
  for_each_index(count * width,
                 [=](std::int64_t i) { out[i] = table[index[i / width] * width + i % width]; });
}

constexpr int block_columns = 64;
constexpr int block_strips = 4;

/// A block for each position in the order of the indices: the first of an index sums all of them,
/// every 4th in a strip of its own, and the strips in their order.
template <class T>
__global__ void __launch_bounds__(block_columns* block_strips)
    embedding_backward_kernel(const T* dy, const std::int64_t* index, const std::int64_t* order,
                              std::int64_t count, std::int64_t padding_idx, std::int64_t width,
                              std::int64_t tiles, T* dtable) {
  using C = compute_t<T>;
  NORMA_SHARED(C, scratch, block_columns * block_strips);
  const std::int64_t first = blockIdx.x / tiles;
  const std::int64_t row = index[order[first]];
  if (row == padding_idx || (first > 0 && index[order[first - 1]] == row)) return;
  const int strip = static_cast<int>(threadIdx.y), lane = static_cast<int>(threadIdx.x);
  const std::int64_t column = blockIdx.x % tiles * block_columns + lane;
  C sum = 0;
  for (std::int64_t i = first + strip; i < count; i += block_strips) {
    const std::int64_t position = order[i];
    if (index[position] != row) break;
    if (column < width) sum += element<C>(dy[position * width + column]);
  }
  scratch[strip * block_columns + lane] = sum;
  __syncthreads();
  if (strip != 0 || column >= width) return;
  for (int s = 1; s < block_strips; ++s) sum += scratch[s * block_columns + lane];
  dtable[row * width + column] = element<T>(sum);
}

template <class Bits>
__global__ void gather_kernel(const Bits* x, const std::int64_t* index, IndexShape s, Bits* out) {
  for_each_index(s.outer * s.length * s.inner, [=](std::int64_t i) {
    const std::int64_t outer = i / s.inner / s.length;
    out[i] = x[(outer * s.table_length + index[i]) * s.inner + i % s.inner];
  });
}

/// A thread for each (outer, inner), in the order of the index: what meets in one place meets in a
/// fixed order.
template <bool add, class T>
__global__ void scatter_kernel(const T* source, const std::int64_t* index, IndexShape s, T* out) {
  for_each_index(s.outer * s.inner, [=](std::int64_t column) {
    const std::int64_t outer = column / s.inner, inner = column % s.inner;
    for (std::int64_t i = 0; i < s.length; ++i) {
      const std::int64_t from = (outer * s.length + i) * s.inner + inner;
      T& to = out[(outer * s.table_length + index[from]) * s.inner + inner];
      if constexpr (add)
        to = element<T>(element<compute_t<T>>(to) + element<compute_t<T>>(source[from]));
      else
        to = source[from];
    }
  });
}

template <bool add, class T>
void launch_scatter(const T* source, const std::int64_t* index, const IndexShape& s, T* out,
                    void* stream) {
  if (s.outer * s.length * s.inner > 0)
    device::launch(loop_config("scatter", s.outer * s.inner, stream), scatter_kernel<add, T>,
                   source, index, s, out);
}

}  // namespace

template <class Unit>
void embedding(const Unit* table, const std::int64_t* index, std::int64_t count, std::int64_t width,
               Unit* out, void* stream) {
  if (count * width > 0)
    device::launch(loop_config("embedding", count * width, stream), embedding_kernel<Unit>, table,
                   index, count, width, out);
}

template <class T>
void embedding_backward(const T* dy, const std::int64_t* index, std::int64_t count,
                        std::int64_t padding_idx, std::int64_t rows, std::int64_t width, T* dtable,
                        std::int64_t* workspace, void* stream) {
  fill_zero(dtable, rows * width, stream);
  if (count * width == 0) return;
  const std::int64_t* const order = sort_positions(index, count, rows, workspace, stream);
  const std::int64_t tiles = (width + block_columns - 1) / block_columns;
  device::launch({.name = "embedding_backward",
                  .grid = {static_cast<unsigned>(count * tiles)},
                  .block = {block_columns, block_strips},
                  .stream = stream},
                 embedding_backward_kernel<T>, dy, index, order, count, padding_idx, width, tiles,
                 dtable);
}

template <class Bits>
void gather(const Bits* x, const std::int64_t* index, const IndexShape& shape, Bits* out,
            void* stream) {
  const std::int64_t count = shape.outer * shape.length * shape.inner;
  if (count > 0)
    device::launch(loop_config("gather", count, stream), gather_kernel<Bits>, x, index, shape, out);
}
template <class Bits>
void scatter(const Bits* source, const std::int64_t* index, const IndexShape& shape, Bits* out,
             void* stream) {
  launch_scatter<false>(source, index, shape, out, stream);
}
template <class T>
void scatter_add(const T* source, const std::int64_t* index, const IndexShape& shape, T* out,
                 void* stream) {
  launch_scatter<true>(source, index, shape, out, stream);
}

#define NORMA_EMBEDDING(Unit)                                                                 \
  template void embedding<Unit>(const Unit*, const std::int64_t*, std::int64_t, std::int64_t, \
                                Unit*, void*);
NORMA_FOR_SIZES(NORMA_EMBEDDING)
NORMA_EMBEDDING(Bytes16)
#define NORMA_GATHER(Bits)                                                                       \
  template void gather<Bits>(const Bits*, const std::int64_t*, const IndexShape&, Bits*, void*); \
  template void scatter<Bits>(const Bits*, const std::int64_t*, const IndexShape&, Bits*, void*);
NORMA_FOR_SIZES(NORMA_GATHER)
#define NORMA_EMBEDDING_BACKWARD(T)                                                              \
  template void embedding_backward<T>(const T*, const std::int64_t*, std::int64_t, std::int64_t, \
                                      std::int64_t, std::int64_t, T*, std::int64_t*, void*);
NORMA_FOR_FLOATING_TYPES(NORMA_EMBEDDING_BACKWARD)
#define NORMA_SCATTER_ADD(T) \
  template void scatter_add<T>(const T*, const std::int64_t*, const IndexShape&, T*, void*);
NORMA_FOR_ALL_TYPES(NORMA_SCATTER_ADD)

}  // namespace norma::cuda_kernels
