// Rows of a matrix over groups of threads. A row that fits stays in registers between its
// statistics and its output; a wider one is read anew each time, mostly from the cache. A kernel is
// written once for both: it visits its rows by visit_rows and write_row.
#pragma once

#include "norma/cuda/device.cuh"

namespace norma::cuda_kernels {

/// How rows lie over threads: `group` threads own a row; thread t holds the vectors of `vec`
/// elements number t, t + group, …, `elements` of them in all (0: as many as there are, and none in
/// registers); `rows` rows at a time.
template <int group_, int elements_, int vec_, int rows_>
struct Geometry {
  static constexpr int group = group_, elements = elements_, vec = vec_, rows = rows_;
  static constexpr bool resident = elements > 0;
  static constexpr int vectors = elements / vec;
  static constexpr int threads = group < 128 ? 128 : group;
  static constexpr int groups = threads / group;
  static constexpr std::int64_t capacity = std::int64_t{group} * elements;
  /// Rows of a block, all at a time.
  static constexpr std::int64_t block_rows = groups * rows;
};

/// Where a thread stands in its row, and which columns are its own.
template <class G>
struct Place {
  int lane = static_cast<int>(threadIdx.x) % G::group;
  int group = static_cast<int>(threadIdx.x) / G::group;
  __device__ __forceinline__ std::int64_t column(int vector) const {
    return static_cast<std::int64_t>(vector * G::group + lane) * G::vec;
  }
};

/// The part of a row that one thread holds. Columns past the width hold zeros, as do all where the
/// row is not `active`: beyond the last row, or of an absent tensor.
template <class T, class G, bool resident = G::resident>
struct RowPart {
  device::Vector<T, G::vec> vectors[G::vectors];

  __device__ __forceinline__ void load(const T* row, std::int64_t width, const Place<G>& place,
                                       bool active = true) {
    NORMA_UNROLL
    for (int v = 0; v < G::vectors; ++v) {
      const std::int64_t column = place.column(v);
      if (active && column < width) {
        vectors[v] = device::load<G::vec>(row + column);
      } else {
        NORMA_UNROLL
        for (int e = 0; e < G::vec; ++e) vectors[v][e] = T{};
      }
    }
  }
  __device__ __forceinline__ const device::Vector<T, G::vec>& vector(int v, std::int64_t) const {
    return vectors[v];
  }
};
/// A row that does not fit: where it is.
template <class T, class G>
struct RowPart<T, G, false> {
  const T* from;

  __device__ __forceinline__ void load(const T* row, std::int64_t, const Place<G>&,
                                       bool active = true) {
    from = active ? row : nullptr;
  }
  __device__ __forceinline__ device::Vector<T, G::vec> vector(int, std::int64_t column) const {
    if (from != nullptr) return device::load<G::vec>(from + column);
    device::Vector<T, G::vec> zeros;
    NORMA_UNROLL
    for (int e = 0; e < G::vec; ++e) zeros[e] = T{};
    return zeros;
  }
};

/// Calls use(v, column) for every vector of the thread's part, `column` its first.
template <class G, class Use>
__device__ __forceinline__ void for_each_vector(std::int64_t width, const Place<G>& place,
                                                const Use& use) {
  if constexpr (G::resident) {
    NORMA_UNROLL
    for (int v = 0; v < G::vectors; ++v) {
      const std::int64_t column = place.column(v);
      if (column < width) use(v, column);
    }
  } else {
    constexpr std::int64_t step = std::int64_t{G::group} * G::vec;
    for (std::int64_t column = place.column(0); column < width; column += step) use(0, column);
  }
}
/// Calls use(v, e, column) for every element of the thread's part, column by column.
template <class G, class Use>
__device__ __forceinline__ void for_each_element(std::int64_t width, const Place<G>& place,
                                                 const Use& use) {
  for_each_vector(width, place, [&](int v, std::int64_t column) {
    NORMA_UNROLL
    for (int e = 0; e < G::vec; ++e) use(v, e, column + e);
  });
}

/// An element of the thread's part: its column, and its place among the elements in registers.
struct Element {
  std::int64_t column;
  int slot;
};
/// Calls use(element, value, …) for every element of the thread's part, with its value in each row.
template <class C, class G, class Use, class... Rows>
__device__ __forceinline__ void visit_rows(std::int64_t width, const Place<G>& place,
                                           const Use& use, const Rows&... rows) {
  for_each_vector(width, place, [&](int v, std::int64_t column) {
    const auto visit = [&](const auto&... vectors) {
      NORMA_UNROLL
      for (int e = 0; e < G::vec; ++e)
        use(Element{column + e, v * G::vec + e}, device::convert<C>(vectors[e])...);
    };
    visit(rows.vector(v, column)...);
  });
}
/// out[column] = value_of(element, value, …) for every element of the thread's part.
template <class C, class T, class G, class ValueOf, class... Rows>
__device__ __forceinline__ void write_row(T* out, std::int64_t width, const Place<G>& place,
                                          const ValueOf& value_of, const Rows&... rows) {
  for_each_vector(width, place, [&](int v, std::int64_t column) {
    const auto write = [&](const auto&... vectors) {
      device::Vector<T, G::vec> values;
      NORMA_UNROLL
      for (int e = 0; e < G::vec; ++e)
        values[e] = device::convert<T>(
            value_of(Element{column + e, v * G::vec + e}, device::convert<C>(vectors[e])...));
      device::store<G::vec>(out + column, values);
    };
    write(rows.vector(v, column)...);
  });
}

}  // namespace norma::cuda_kernels
