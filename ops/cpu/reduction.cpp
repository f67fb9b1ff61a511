// CPU reductions of [outer, reduced, inner]. Long reductions go in two stages over chunks of fixed
// size, combined in order, so that the result does not depend on the number of threads.
#include <cstring>
#include <limits>
#include <vector>

#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"

namespace norma::cpu_kernels {

namespace {

// -- what is reduced: written once for scalars and for vectors of them ----------------------------

template <class A>
struct Sum {
  static constexpr bool centred = false;
  static A identity() { return A{0}; }
  template <class V>
  static V combine(V a, V b) {
    return a + b;
  }
};
/// Sum of (x - centre)^2.
template <class A>
struct SquaredDeviation : Sum<A> {
  static constexpr bool centred = true;
};
template <class A>
struct Prod {
  static constexpr bool centred = false;
  static A identity() { return A{1}; }
  template <class V>
  static V combine(V a, V b) {
    return a * b;
  }
};
/// Maximum and minimum let NaN win, as PyTorch's do.
template <class A>
struct Max {
  static constexpr bool centred = false;
  static A identity() {
    if constexpr (std::is_floating_point_v<A>) return -std::numeric_limits<A>::infinity();
    return std::numeric_limits<A>::lowest();
  }
  template <class V>
  static V combine(V a, V b) {
    return ((b > a) | (b != b)) ? b : a;
  }
};
template <class A>
struct Min {
  static constexpr bool centred = false;
  static A identity() {
    if constexpr (std::is_floating_point_v<A>) return std::numeric_limits<A>::infinity();
    return std::numeric_limits<A>::max();
  }
  template <class V>
  static V combine(V a, V b) {
    return ((b < a) | (b != b)) ? b : a;
  }
};
/// On 0 and 1.
template <class A>
struct Any {
  static constexpr bool centred = false;
  static A identity() { return A{0}; }
  template <class V>
  static V combine(V a, V b) {
    return a | b;
  }
};
template <class A>
struct All {
  static constexpr bool centred = false;
  static A identity() { return A{1}; }
  template <class V>
  static V combine(V a, V b) {
    return a & b;
  }
};

/// An element as the type it is reduced in; any and all see 0 or 1.
template <class A, class T>
A load(T value) {
  if constexpr (std::is_same_v<A, std::uint8_t>)
    return static_cast<A>(value != T{});
  else
    return static_cast<A>(value);
}

// -- one run of elements (inner == 1) -------------------------------------------------------------

template <class Op, class A, class T>
A reduce_run(const T* x, std::int64_t count, A centre) {
  typedef A Vec __attribute__((vector_size(32)));
  constexpr std::int64_t lanes = 32 / static_cast<std::int64_t>(sizeof(A));
  const auto load_vec = [&](const T* from) {
    Vec v;
    if constexpr (std::is_same_v<A, T>)
      std::memcpy(&v, from, sizeof(v));
    else
      for (std::int64_t k = 0; k < lanes; ++k) v[k] = load<A>(from[k]);
    if constexpr (Op::centred) {
      v -= centre;
      v *= v;
    }
    return v;
  };
  A result = Op::identity();
  std::int64_t i = 0;
  if (count >= 4 * lanes) {  // four chains hide the latency of the operation
    Vec a = Vec{} + Op::identity();
    Vec b = a;
    Vec c = a;
    Vec d = a;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      a = Op::combine(a, load_vec(x + i));
      b = Op::combine(b, load_vec(x + i + lanes));
      c = Op::combine(c, load_vec(x + i + 2 * lanes));
      d = Op::combine(d, load_vec(x + i + 3 * lanes));
    }
    a = Op::combine(Op::combine(a, b), Op::combine(c, d));
    for (std::int64_t k = 0; k < lanes; ++k) result = Op::combine(result, A{a[k]});
  }
  for (; i < count; ++i) {
    A value = load<A>(x[i]);
    if constexpr (Op::centred) value = (value - centre) * (value - centre);
    result = static_cast<A>(Op::combine(result, value));
  }
  return result;
}

// -- both stages ----------------------------------------------------------------------------------

constexpr std::int64_t run_chunk = 16384;   // elements of a run that one item reduces
constexpr std::int64_t row_chunk = 256;     // rows that one item reduces, and
constexpr std::int64_t column_block = 256;  // columns: accumulators that fit the first-level cache

/// Combines partial results [outer, chunks, inner] in the order of the chunks.
template <class Op, class A, class Store>
void combine_chunks(const std::vector<A>& partial, std::int64_t outer, std::int64_t chunks,
                    std::int64_t inner, const Store& store) {
  parallel_for(outer * inner, chunks, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const A* const first = partial.data() + i / inner * chunks * inner + i % inner;
      A result = Op::identity();
      for (std::int64_t c = 0; c < chunks; ++c)
        result = static_cast<A>(Op::combine(result, first[c * inner]));
      store(i, result);
    }
  });
}

/// Calls `store(o * inner + j, result)`; `centre` [outer, inner] is used by centred reductions
/// only.
template <class Op, class A, class T, class Store>
void reduce_runs(const T* x, std::int64_t outer, std::int64_t reduced, const A* centre,
                 const Store& store) {
  const auto centre_of = [&](std::int64_t o) { return Op::centred ? centre[o] : A{0}; };
  if (reduced <= run_chunk) {
    parallel_for(outer, reduced, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o)
        store(o, reduce_run<Op, A>(x + o * reduced, reduced, centre_of(o)));
    });
    return;
  }
  const std::int64_t chunks = (reduced + run_chunk - 1) / run_chunk;
  std::vector<A> partial(static_cast<std::size_t>(outer * chunks));
  parallel_for(outer * chunks, run_chunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t o = item / chunks;
      const std::int64_t start = item % chunks * run_chunk;
      partial[static_cast<std::size_t>(item)] = reduce_run<Op, A>(
          x + o * reduced + start, std::min(run_chunk, reduced - start), centre_of(o));
    }
  });
  combine_chunks<Op, A>(partial, outer, chunks, 1, store);
}

template <class Op, class A, class T, class Store>
void reduce_columns(const T* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner,
                    const A* centre, const Store& store) {
  const std::int64_t chunks = std::max<std::int64_t>((reduced + row_chunk - 1) / row_chunk, 1);
  const std::int64_t blocks = (inner + column_block - 1) / column_block;
  std::vector<A> partial(chunks > 1 ? static_cast<std::size_t>(outer * chunks * inner) : 0);
  const std::int64_t item_cost = std::min(reduced, row_chunk) * std::min(inner, column_block);
  parallel_for(outer * chunks * blocks, item_cost, [&](std::int64_t begin, std::int64_t end) {
    A sums[column_block];
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t column = item % blocks * column_block;
      const std::int64_t chunk = item / blocks % chunks;
      const std::int64_t o = item / blocks / chunks;
      const std::int64_t width = std::min(column_block, inner - column);
      const std::int64_t last = std::min((chunk + 1) * row_chunk, reduced);
      const A* const c = Op::centred ? centre + o * inner + column : nullptr;
      std::fill(sums, sums + width, Op::identity());
      for (std::int64_t r = chunk * row_chunk; r < last; ++r) {
        const T* const row = x + (o * reduced + r) * inner + column;
#pragma omp simd
        for (std::int64_t j = 0; j < width; ++j) {
          A value = load<A>(row[j]);
          if constexpr (Op::centred) value = (value - c[j]) * (value - c[j]);
          sums[j] = static_cast<A>(Op::combine(sums[j], value));
        }
      }
      if (chunks == 1)
        for (std::int64_t j = 0; j < width; ++j) store(o * inner + column + j, sums[j]);
      else
        std::copy(sums, sums + width, partial.data() + (o * chunks + chunk) * inner + column);
    }
  });
  if (chunks > 1) combine_chunks<Op, A>(partial, outer, chunks, inner, store);
}

template <class Op, class A, class T, class Store>
void reduce_with(const T* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner,
                 const A* centre, const Store& store) {
  if (inner == 1)
    reduce_runs<Op, A>(x, outer, reduced, centre, store);
  else
    reduce_columns<Op, A>(x, outer, reduced, inner, centre, store);
}

template <template <class> class Op, class A, class T>
void reduce_into(const Tensor& x, std::int64_t outer, std::int64_t reduced, std::int64_t inner,
                 const Tensor& out) {
  const auto run = [&]<class R>(TypeTag<R>) {
    R* const to = out.data<R>();
    reduce_with<Op<A>, A>(static_cast<const T*>(x.data<T>()), outer, reduced, inner,
                          static_cast<const A*>(nullptr),
                          [to](std::int64_t i, A value) { to[i] = static_cast<R>(value); });
  };
  if constexpr (std::is_same_v<A, std::uint8_t>) {
    run(TypeTag<bool>{});
  } else if constexpr (std::is_same_v<A, T>) {
    run(TypeTag<T>{});
  } else {  // in the type of x, or unrounded
    if (out.dtype() == dtype_of<T>)
      run(TypeTag<T>{});
    else
      run(TypeTag<A>{});
  }
}

void reduce(ReduceOp op, const Tensor& x, std::int64_t outer, std::int64_t reduced,
            std::int64_t inner, const Tensor& out) {
  visit_all(x.dtype(), [&]<class T>(TypeTag<T>) {
    using A = accumulate_t<T>;
    switch (op) {
      case ReduceOp::sum:
        return reduce_into<Sum, A, T>(x, outer, reduced, inner, out);
      case ReduceOp::prod:
        return reduce_into<Prod, A, T>(x, outer, reduced, inner, out);
      case ReduceOp::amax:
        return reduce_into<Max, A, T>(x, outer, reduced, inner, out);
      case ReduceOp::amin:
        return reduce_into<Min, A, T>(x, outer, reduced, inner, out);
      case ReduceOp::any:
        return reduce_into<Any, std::uint8_t, T>(x, outer, reduced, inner, out);
      case ReduceOp::all:
        return reduce_into<All, std::uint8_t, T>(x, outer, reduced, inner, out);
    }
  });
}

void mean_variance(const Tensor& x, std::int64_t outer, std::int64_t reduced, std::int64_t inner,
                   const Tensor& mean, const Tensor& variance) {
  visit_floating(x.dtype(), "mean_variance", [&]<class T>(TypeTag<T>) {
    using A = accumulate_t<T>;
    const T* const data = x.data<T>();
    A* const means = mean.data<A>();
    A* const variances = variance.data<A>();
    const A count = static_cast<A>(reduced);
    reduce_with<Sum<A>, A>(data, outer, reduced, inner, static_cast<const A*>(nullptr),
                           [&](std::int64_t i, A sum) { means[i] = sum / count; });
    reduce_with<SquaredDeviation<A>, A>(data, outer, reduced, inner, means,
                                        [&](std::int64_t i, A sum) { variances[i] = sum / count; });
  });
}

// -- along a dimension ----------------------------------------------------------------------------

void argreduce(bool largest, const Tensor& x, std::int64_t outer, std::int64_t reduced,
               std::int64_t inner, const Tensor& out) {
  visit_all(x.dtype(), [&]<class T>(TypeTag<T>) {
    using A = accumulate_t<T>;
    const T* const data = x.data<T>();
    std::int64_t* const indices = out.data<std::int64_t>();
    parallel_for(outer * inner, reduced, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* const from = data + i / inner * reduced * inner + i % inner;
        std::int64_t best = 0;
        A value = static_cast<A>(from[0]);
        // The first NaN wins, as PyTorch's does.
        for (std::int64_t r = 1; r < reduced && value == value; ++r) {
          const A candidate = static_cast<A>(from[r * inner]);
          const bool better = largest ? candidate > value : candidate < value;
          if (better || candidate != candidate) {
            value = candidate;
            best = r;
          }
        }
        indices[i] = best;
      }
    });
  });
}

void cumsum(const Tensor& x, std::int64_t outer, std::int64_t length, std::int64_t inner,
            bool reverse, const Tensor& out) {
  visit_all(x.dtype(), [&]<class T>(TypeTag<T>) {
    using A = accumulate_t<T>;
    using R = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;
    const T* const from = x.data<T>();
    R* const to = out.data<R>();
    parallel_for(outer * inner, length, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t first = i / inner * length * inner + i % inner;
        A sum{0};
        for (std::int64_t k = 0; k < length; ++k) {
          const std::int64_t at = first + (reverse ? length - 1 - k : k) * inner;
          sum += static_cast<A>(from[at]);
          to[at] = static_cast<R>(sum);
        }
      }
    });
  });
}

}  // namespace

void add_reduction_kernels(Backend& table) {
  table.reduce = reduce;
  table.mean_variance = mean_variance;
  table.argreduce = argreduce;
  table.cumsum = cumsum;
}

}  // namespace norma::cpu_kernels
