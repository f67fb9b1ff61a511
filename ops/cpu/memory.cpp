// CPU kernels that move and make elements: fill, copy between any strides and dtypes, random
// numbers, finiteness.
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numbers>

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
    const std::int64_t row_end = std::min(row + tile, rows.size);
    for (std::int64_t column = 0; column < columns.size; column += tile) {
      const std::int64_t column_end = std::min(column + tile, columns.size);
      for (std::int64_t r = row; r < row_end; ++r)
        for (std::int64_t c = column; c < column_end; ++c)
          to[r * rows.out + c * columns.out] =
              static_cast<To>(from[r * rows.source + c * columns.source]);
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

// -- random numbers -------------------------------------------------------------------------------

/// Calls `body(block, words)` for the 128-bit blocks that `per_block` elements each take from.
template <class Body>
void for_each_block(std::int64_t count, std::int64_t per_block, const PhiloxState& state,
                    const Body& body) {
  parallel_for((count + per_block - 1) / per_block, 16 * per_block,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t block = begin; block < end; ++block)
                   body(block,
                        philox(state.seed, state.offset + static_cast<std::uint64_t>(block)));
               });
}

/// Four uniforms in [0, 1) of a block in float, two in double.
template <class A>
auto uniforms(const std::array<std::uint32_t, 4>& words) {
  if constexpr (std::is_same_v<A, double>)
    return std::array<double, 2>{uniform_from_bits(words[0], words[1]),
                                 uniform_from_bits(words[2], words[3])};
  else
    return std::array<float, 4>{uniform_from_bits(words[0]), uniform_from_bits(words[1]),
                                uniform_from_bits(words[2]), uniform_from_bits(words[3])};
}

/// Writes what `make(u)` turns the uniforms of each block into.
template <class T, class Make>
void generate(const Tensor& out, const PhiloxState& state, const Make& make) {
  using A = accumulate_t<T>;
  constexpr std::int64_t per_block = std::is_same_v<A, double> ? 2 : 4;
  T* const data = out.data<T>();
  const std::int64_t count = out.numel();
  for_each_block(count, per_block, state, [&](std::int64_t block, const auto& words) {
    auto values = uniforms<A>(words);
    make(values);
    const std::int64_t first = block * per_block;
    const std::int64_t present = std::min(per_block, count - first);
    for (std::int64_t k = 0; k < present; ++k)
      data[first + k] = static_cast<T>(values[static_cast<std::size_t>(k)]);
  });
}

void uniform(const Tensor& out, PhiloxState state, double low, double high) {
  visit_floating(out.dtype(), "uniform", [&]<class T>(TypeTag<T>) {
    using A = accumulate_t<T>;
    const A start = static_cast<A>(low);
    const A range = static_cast<A>(high - low);
    const A bound = static_cast<A>(high);
    generate<T>(out, state, [&](auto& values) {
      for (A& value : values) {
        value = start + value * range;
        // Rounding to T may reach the excluded bound.
        if (static_cast<A>(static_cast<T>(value)) >= bound) value = start;
      }
    });
  });
}

/// Box-Muller on pairs of uniforms: element 2k is the cosine, 2k + 1 the sine.
void normal(const Tensor& out, PhiloxState state, double mean, double std) {
  visit_floating(out.dtype(), "normal", [&]<class T>(TypeTag<T>) {
    using A = accumulate_t<T>;
    const A centre = static_cast<A>(mean);
    const A scale = static_cast<A>(std);
    generate<T>(out, state, [&](auto& values) {
      for (std::size_t k = 0; k < values.size(); k += 2) {
        const A radius = std::sqrt(A{-2} * std::log(A{1} - values[k]));  // 1 - u is never 0
        const A angle = A{2} * std::numbers::pi_v<A> * values[k + 1];
        values[k] = centre + scale * radius * std::cos(angle);
        values[k + 1] = centre + scale * radius * std::sin(angle);
      }
    });
  });
}

/// High 64 bits of the product.
std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64);
}

void randint(const Tensor& out, PhiloxState state, std::int64_t low, std::int64_t high) {
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  visit_all(out.dtype(), [&]<class T>(TypeTag<T>) {
    T* const data = out.data<T>();
    const std::int64_t count = out.numel();
    for_each_block(count, 2, state, [&](std::int64_t block, const auto& words) {
      for (std::int64_t k = 0; k < 2 && 2 * block + k < count; ++k) {
        const std::size_t w = static_cast<std::size_t>(2 * k);
        const std::uint64_t bits = (std::uint64_t{words[w]} << 32) | words[w + 1];
        const std::uint64_t value = static_cast<std::uint64_t>(low) + multiply_high(bits, range);
        data[2 * block + k] = static_cast<T>(static_cast<std::int64_t>(value));
      }
    });
  });
}

// -- finiteness
// -------------------------------------------------------------------------------------

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
  table.uniform = uniform;
  table.normal = normal;
  table.randint = randint;
  table.all_finite = all_finite;
}

}  // namespace norma::cpu_kernels
