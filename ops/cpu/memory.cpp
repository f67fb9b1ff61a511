// CPU kernels that move and make elements: fill, copy between any strides and dtypes, random
// numbers, finiteness.
#include <array>
#include <atomic>
#include <cstring>

#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"

namespace norma::cpu_kernels {

namespace {

void fill(const Tensor& out, double value) {
  visit_all(out.dtype(), [&]<class T>(TypeTag<T>) {
    T* const data = out.data<T>();
    const T element = static_cast<T>(value);
    parallel_for(out.numel(), 1, [&](std::int64_t begin, std::int64_t end) {
      std::fill(data + begin, data + end, element);
    });
  });
}

// -- copy ---------------------------------------------------------------------------------------

struct CopyDim {
  std::int64_t size;
  std::int64_t out;     // stride of the destination, in elements
  std::int64_t source;  // stride of the source
};

/// The loops of a copy: dimensions from the outermost to the innermost by destination stride,
/// merged where both sides run on without a gap.
struct CopyPlan {
  std::array<CopyDim, Shape::max_rank> dims;
  int rank = 0;
};

CopyPlan plan_copy(const Tensor& out, const Tensor& source) {
  CopyPlan sorted;
  for (std::int64_t d = 0; d < out.dim(); ++d)
    if (out.shape()[d] != 1)
      sorted.dims[static_cast<std::size_t>(sorted.rank++)] = {out.shape()[d], out.strides()[d],
                                                              source.strides()[d]};
  std::stable_sort(sorted.dims.begin(), sorted.dims.begin() + sorted.rank,
                   [](const CopyDim& a, const CopyDim& b) { return a.out > b.out; });
  CopyPlan plan;
  for (int i = 0; i < sorted.rank; ++i) {
    const CopyDim& dim = sorted.dims[static_cast<std::size_t>(i)];
    if (plan.rank > 0) {
      CopyDim& last = plan.dims[static_cast<std::size_t>(plan.rank - 1)];
      if (last.out == dim.out * dim.size && last.source == dim.source * dim.size) {
        last = {last.size * dim.size, dim.out, dim.source};
        continue;
      }
    }
    plan.dims[static_cast<std::size_t>(plan.rank++)] = dim;
  }
  return plan;
}

/// Steps through the outer dimensions of a plan in order, keeping both offsets.
class Odometer {
 public:
  Odometer(const CopyPlan& plan, int rank, std::int64_t position) : plan_(plan), rank_(rank) {
    for (int d = rank_ - 1; d >= 0; --d) {
      const CopyDim& dim = at(d);
      const std::int64_t i = position % dim.size;
      position /= dim.size;
      index_[static_cast<std::size_t>(d)] = i;
      out += i * dim.out;
      source += i * dim.source;
    }
  }
  void next() {
    for (int d = rank_ - 1; d >= 0; --d) {
      const CopyDim& dim = at(d);
      std::int64_t& i = index_[static_cast<std::size_t>(d)];
      out += dim.out;
      source += dim.source;
      if (++i < dim.size) return;
      out -= dim.size * dim.out;
      source -= dim.size * dim.source;
      i = 0;
    }
  }
  std::int64_t out = 0;
  std::int64_t source = 0;

 private:
  const CopyDim& at(int d) const { return plan_.dims[static_cast<std::size_t>(d)]; }
  const CopyPlan& plan_;
  int rank_;
  std::array<std::int64_t, Shape::max_rank> index_{};
};

template <class To, class From>
void copy_run(To* out, std::int64_t out_stride, const From* source, std::int64_t source_stride,
              std::int64_t count) {
  if (out_stride == 1 && source_stride == 1) {
    if constexpr (std::is_same_v<To, From>)
      std::memcpy(out, source, static_cast<std::size_t>(count) * sizeof(To));
    else
      for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<To>(source[i]);
  } else if (out_stride == 1 && source_stride == 0) {
    std::fill(out, out + count, static_cast<To>(*source));
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      out[i * out_stride] = static_cast<To>(source[i * source_stride]);
  }
}

/// One run of the innermost dimension after the other.
template <class To, class From>
void copy_rows(const CopyPlan& plan, To* out, const From* source) {
  const CopyDim inner = plan.dims[static_cast<std::size_t>(plan.rank - 1)];
  std::int64_t rows = 1;
  for (int d = 0; d + 1 < plan.rank; ++d) rows *= plan.dims[static_cast<std::size_t>(d)].size;
  parallel_for(rows, inner.size, [&](std::int64_t begin, std::int64_t end) {
    Odometer at(plan, plan.rank - 1, begin);
    for (std::int64_t row = begin; row < end; ++row, at.next())
      copy_run(out + at.out, inner.out, source + at.source, inner.source, inner.size);
  });
}

/// The source runs along another dimension than the destination: square tiles keep both in the
/// cache.
template <class To, class From>
void copy_transposed(CopyPlan plan, int source_dim, To* out, const From* source) {
  constexpr std::int64_t tile = 32;
  const CopyDim columns = plan.dims[static_cast<std::size_t>(plan.rank - 1)];
  const CopyDim rows = plan.dims[static_cast<std::size_t>(source_dim)];
  for (int d = source_dim; d + 2 < plan.rank; ++d)
    plan.dims[static_cast<std::size_t>(d)] = plan.dims[static_cast<std::size_t>(d + 1)];
  plan.rank -= 2;
  std::int64_t outer = 1;
  for (int d = 0; d < plan.rank; ++d) outer *= plan.dims[static_cast<std::size_t>(d)].size;

  const std::int64_t bands = (rows.size + tile - 1) / tile;
  const auto copy_band = [&](std::int64_t row, To* to, const From* from) {
    const std::int64_t height = std::min(tile, rows.size - row);
    To square[tile][tile];
    for (std::int64_t column = 0; column < columns.size; column += tile) {
      const std::int64_t width = std::min(tile, columns.size - column);
      const From* const corner = from + row * rows.source + column * columns.source;
      To* const target = to + row * rows.out + column * columns.out;
      // Through a square of its own: whole cache lines on both sides, also where strides of a power
      // of two map the rows of a tile to one cache set.
      for (std::int64_t c = 0; c < width; ++c)
        copy_run(square[c], 1, corner + c * columns.source, rows.source, height);
      for (std::int64_t r = 0; r < height; ++r)
        for (std::int64_t c = 0; c < width; ++c)
          target[r * rows.out + c * columns.out] = square[c][r];
    }
  };
  parallel_for(outer * bands, tile * columns.size, [&](std::int64_t begin, std::int64_t end) {
    Odometer at(plan, plan.rank, begin / bands);
    for (std::int64_t item = begin; item < end; ++item) {
      copy_band(item % bands * tile, out + at.out, source + at.source);
      if ((item + 1) % bands == 0) at.next();
    }
  });
}

template <class To, class From>
void copy_elements(const Tensor& out, const Tensor& source, To* to, const From* from) {
  const CopyPlan plan = plan_copy(out, source);
  if (plan.rank == 0) {
    *to = static_cast<To>(*from);
    return;
  }
  const CopyDim inner = plan.dims[static_cast<std::size_t>(plan.rank - 1)];
  if (plan.rank == 1) {  // one long run: split it over the threads
    parallel_for(inner.size, 1, [&](std::int64_t begin, std::int64_t end) {
      copy_run(to + begin * inner.out, inner.out, from + begin * inner.source, inner.source,
               end - begin);
    });
    return;
  }
  if (inner.source > 1) {
    int source_dim = plan.rank - 1;
    for (int d = plan.rank - 2; d >= 0; --d) {
      const CopyDim& dim = plan.dims[static_cast<std::size_t>(d)];
      if (dim.source > 0 && dim.source < plan.dims[static_cast<std::size_t>(source_dim)].source)
        source_dim = d;
    }
    if (source_dim != plan.rank - 1) {
      copy_transposed(plan, source_dim, to, from);
      return;
    }
  }
  copy_rows(plan, to, from);
}

void copy(const Tensor& out, const Tensor& source) {
  if (out.numel() == 0) return;
  if (out.dtype() == source.dtype()) {  // bits move unchanged: one instance for each element size
    const auto move = [&]<class Bits>(TypeTag<Bits>) {
      copy_elements(out, source, static_cast<Bits*>(out.raw_data()),
                    static_cast<const Bits*>(source.raw_data()));
    };
    switch (out.element_size()) {
      case 1:
        return move(TypeTag<std::uint8_t>{});
      case 2:
        return move(TypeTag<std::uint16_t>{});
      case 4:
        return move(TypeTag<std::uint32_t>{});
      default:
        return move(TypeTag<std::uint64_t>{});
    }
  }
  visit_all(out.dtype(), [&]<class To>(TypeTag<To>) {
    visit_all(source.dtype(), [&]<class From>(TypeTag<From>) {
      if constexpr (!std::is_same_v<To, From>)
        copy_elements(out, source, out.data<To>(), static_cast<const From*>(source.data<From>()));
    });
  });
}

// -- finiteness -----------------------------------------------------------------------------------

/// Whether any exponent is all ones.
template <class Bits>
bool any_non_finite(const void* data, std::int64_t count, Bits exponent_mask) {
  const Bits* const bits = static_cast<const Bits*>(data);
  std::atomic<bool> found{false};
  parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t stretch = 8192;  // between looks at what the others found
    for (std::int64_t i = begin; i < end && !found.load(std::memory_order_relaxed); i += stretch) {
      const std::int64_t last = std::min(end, i + stretch);
      Bits bad = 0;
      for (std::int64_t j = i; j < last; ++j)
        bad = static_cast<Bits>(bad | ((bits[j] & exponent_mask) == exponent_mask ? 1 : 0));
      if (bad != 0) found.store(true, std::memory_order_relaxed);
    }
  });
  return found.load();
}

bool all_finite(const Tensor& x) {
  const void* const data = x.raw_data();
  switch (x.dtype()) {
    case DType::float16:
      return !any_non_finite<std::uint16_t>(data, x.numel(), 0x7c00);
    case DType::bfloat16:
      return !any_non_finite<std::uint16_t>(data, x.numel(), 0x7f80);
    case DType::float32:
      return !any_non_finite<std::uint32_t>(data, x.numel(), 0x7f800000);
    case DType::float64:
      return !any_non_finite<std::uint64_t>(data, x.numel(), 0x7ff0000000000000);
    default:
      return true;
  }
}

}  // namespace

void add_memory_kernels(Backend& table) {
  table.fill = fill;
  table.copy = copy;
  table.all_finite = all_finite;
}

}  // namespace norma::cpu_kernels
