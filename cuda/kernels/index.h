// Reading and writing by index on the device. Indices were validated.
#pragma once

#include <cstdint>

namespace norma::cuda_kernels {

/// [outer, length, inner] of an index, and the length of what it points into.
struct IndexShape {
  std::int64_t outer, length, inner, table_length;
};

/// What one access moves at most.
struct alignas(16) Bytes16 {
  std::uint64_t halves[2];
};

/// out[n] = table[index[n]] for `count` rows of `width` units; a unit is 1 to 16 bytes wide, and
/// what it holds does not matter.
template <class Unit>
void embedding(const Unit* table, const std::int64_t* index, std::int64_t count, std::int64_t width,
               Unit* out, void* stream);
/// dtable [rows, width] = sums of rows of dy by their index, in an order that depends on the index
/// alone; rows of `padding_idx` (-1: none) are left out. workspace: of sort_positions.
template <class T>
void embedding_backward(const T* dy, const std::int64_t* index, std::int64_t count,
                        std::int64_t padding_idx, std::int64_t rows, std::int64_t width, T* dtable,
                        std::int64_t* workspace, void* stream);
/// out[o, i, n] = x[o, index[o, i, n], n]; only moves bits.
template <class Bits>
void gather(const Bits* x, const std::int64_t* index, const IndexShape& shape, Bits* out,
            void* stream);
/// out[o, index[o, i, n], n] = source[o, i, n], in the order of i; only moves bits.
template <class Bits>
void scatter(const Bits* source, const std::int64_t* index, const IndexShape& shape, Bits* out,
             void* stream);
/// The same with +=.
template <class T>
void scatter_add(const T* source, const std::int64_t* index, const IndexShape& shape, T* out,
                 void* stream);

}  // namespace norma::cuda_kernels
