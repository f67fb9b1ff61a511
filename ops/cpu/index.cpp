// CPU kernels that read and write by index. Indices were validated at the front door.
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"

namespace norma::cpu_kernels {

namespace {

/// Calls `f` with an unsigned type of the element's size: for kernels that only move bits.
template <class F>
void visit_bits(const Tensor& x, const F& f) {
  switch (x.element_size()) {
    case 1:
      return f(TypeTag<std::uint8_t>{});
    case 2:
      return f(TypeTag<std::uint16_t>{});
    case 4:
      return f(TypeTag<std::uint32_t>{});
    default:
      return f(TypeTag<std::uint64_t>{});
  }
}

void index_range(const Tensor& index, std::int64_t* low, std::int64_t* high) {
  const std::int64_t* const values = index.data<std::int64_t>();
  std::int64_t least = values[0];
  std::int64_t most = values[0];
  for (std::int64_t i = 1; i < index.numel(); ++i) {
    least = std::min(least, values[i]);
    most = std::max(most, values[i]);
  }
  *low = least;
  *high = most;
}

void embedding(const Tensor& table, const Tensor& index, const Tensor& out) {
  const std::size_t row_bytes = static_cast<std::size_t>(table.size(1)) * table.element_size();
  const std::int64_t* const rows = index.data<std::int64_t>();
  const char* const from = static_cast<const char*>(table.raw_data());
  char* const to = static_cast<char*>(out.raw_data());
  parallel_for(index.numel(), table.size(1), [&](std::int64_t begin, std::int64_t end) {
    const auto row = [&](std::int64_t n) {
      return from + static_cast<std::size_t>(rows[n]) * row_bytes;
    };
    for (std::int64_t n = begin; n < end; ++n) {
      // No prefetcher of the processor guesses where the next row is.
      const char* const ahead = row(std::min(n + 3, end - 1));
      for (std::size_t i = 0; i < std::min<std::size_t>(row_bytes, 1024); i += 64)
        __builtin_prefetch(ahead + i);
      std::memcpy(to + static_cast<std::size_t>(n) * row_bytes, row(n), row_bytes);
    }
  });
}

/// Positions sorted by index (stable counting by 8-bit digits of the index): the work grows with
/// the positions, not with the table.
std::vector<std::int32_t> positions_by_index(const std::int64_t* index, std::int64_t count,
                                             std::int64_t table_rows) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(count));
  std::vector<std::int32_t> next(order.size());
  std::iota(order.begin(), order.end(), 0);
  for (int shift = 0; shift == 0 || (table_rows - 1) >> shift != 0; shift += 8) {
    std::array<std::int32_t, 257> start{};
    const auto digit = [&](std::int32_t position) {
      return static_cast<std::size_t>((index[position] >> shift) & 255);
    };
    for (const std::int32_t position : order) ++start[digit(position) + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    for (const std::int32_t position : order)
      next[static_cast<std::size_t>(start[digit(position)]++)] = position;
    order.swap(next);
  }
  return order;
}

/// Each row of the table is summed by one thread in the order of the positions.
void embedding_backward(const Tensor& dy, const Tensor& index, std::int64_t padding_idx,
                        const Tensor& dtable) {
  const std::int64_t count = index.numel();
  const std::int64_t width = dtable.size(1);
  const std::int64_t table_rows = dtable.size(0);
  const std::int64_t* const rows = index.data<std::int64_t>();
  char* const bytes = static_cast<char*>(dtable.raw_data());
  parallel_for(static_cast<std::int64_t>(dtable.nbytes()), 1,
               [&](std::int64_t begin, std::int64_t end) {
                 std::memset(bytes + begin, 0, static_cast<std::size_t>(end - begin));
               });
  if (count == 0 || width == 0) return;
  const std::vector<std::int32_t> order = positions_by_index(rows, count, table_rows);
  const auto row_of = [&](std::int64_t i) { return rows[order[static_cast<std::size_t>(i)]]; };

  visit_floating(dy.dtype(), "embedding", [&]<class T>(TypeTag<T>) {
    using A = accumulate_t<T>;
    const T* const from = dy.data<T>();
    T* const to = dtable.data<T>();
    parallel_for(count, width, [&](std::int64_t begin, std::int64_t end) {
      // A segment of equal indices belongs to the thread in whose range it starts.
      while (begin < end && begin > 0 && row_of(begin) == row_of(begin - 1)) ++begin;
      std::vector<A> sum(std::is_same_v<A, T> ? 0 : static_cast<std::size_t>(width));
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t row = row_of(i);
        std::int64_t last = i + 1;
        while (last < count && row_of(last) == row) ++last;
        if (row != padding_idx) {
          T* const target = to + row * width;
          A* accumulator = sum.data();
          if constexpr (std::is_same_v<A, T>)
            accumulator = target;
          else
            std::fill(sum.begin(), sum.end(), A{0});
          for (std::int64_t k = i; k < last; ++k) {
            const T* const source = from + std::int64_t{order[static_cast<std::size_t>(k)]} * width;
#pragma omp simd
            for (std::int64_t j = 0; j < width; ++j) accumulator[j] += static_cast<A>(source[j]);
          }
          if constexpr (!std::is_same_v<A, T>)
            for (std::int64_t j = 0; j < width; ++j) target[j] = static_cast<T>(accumulator[j]);
        }
        i = last;
      }
    });
  });
}

void gather(const Tensor& x, const Tensor& index, std::int64_t outer, std::int64_t inner,
            const Tensor& out) {
  if (outer * inner == 0 || out.numel() == 0) return;
  const std::int64_t length = index.numel() / (outer * inner);
  const std::int64_t source_length = x.numel() / (outer * inner);
  const std::int64_t* const at = index.data<std::int64_t>();
  visit_bits(x, [&]<class Bits>(TypeTag<Bits>) {
    const Bits* const from = static_cast<const Bits*>(x.raw_data());
    Bits* const to = static_cast<Bits*>(out.raw_data());
    parallel_for(outer * length, inner, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const Bits* const block = from + row / length * source_length * inner;
        for (std::int64_t n = 0; n < inner; ++n)
          to[row * inner + n] = block[at[row * inner + n] * inner + n];
      }
    });
  });
}

template <class T, class Write>
void scatter_each(const Tensor& source, const Tensor& index, std::int64_t outer, std::int64_t inner,
                  const Tensor& out, const Write& write) {
  const std::int64_t length = index.numel() / (outer * inner);
  const std::int64_t target_length = out.numel() / (outer * inner);
  const std::int64_t* const at = index.data<std::int64_t>();
  const T* const from = static_cast<const T*>(source.raw_data());
  T* const to = static_cast<T*>(out.raw_data());
  // Every (outer, inner) column is one thread's, in the order of i: repeated indices meet in a
  // fixed order.
  const auto columns = [&](std::int64_t o, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = 0; i < length; ++i)
      for (std::int64_t n = first; n < last; ++n) {
        const std::int64_t k = (o * length + i) * inner + n;
        write(to[(o * target_length + at[k]) * inner + n], from[k]);
      }
  };
  if (outer > 1) {
    parallel_for(outer, length * inner, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) columns(o, 0, inner);
    });
  } else {
    parallel_for(inner, length,
                 [&](std::int64_t begin, std::int64_t end) { columns(0, begin, end); });
  }
}

void scatter(const Tensor& source, const Tensor& index, std::int64_t outer, std::int64_t inner,
             bool add, const Tensor& out) {
  if (index.numel() == 0) return;
  if (!add) {
    visit_bits(out, [&]<class Bits>(TypeTag<Bits>) {
      scatter_each<Bits>(source, index, outer, inner, out,
                         [](Bits& target, Bits value) { target = value; });
    });
    return;
  }
  visit_all(out.dtype(), [&]<class T>(TypeTag<T>) {
    using A = accumulate_t<T>;
    scatter_each<T>(source, index, outer, inner, out, [](T& target, T value) {
      target = static_cast<T>(static_cast<A>(target) + static_cast<A>(value));
    });
  });
}

}  // namespace

void add_index_kernels(Backend& table) {
  table.index_range = index_range;
  table.embedding = embedding;
  table.embedding_backward = embedding_backward;
  table.gather = gather;
  table.scatter = scatter;
}

}  // namespace norma::cpu_kernels
