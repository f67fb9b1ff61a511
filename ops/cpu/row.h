// Sums and maxima over one row, in a fixed order that depends on its length alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

namespace norma::cpu_kernels {

// Vectors by GCC's and clang's extension, not by `omp simd reduction`: that adds the lanes one by
// one at the end of each row, which costs as much as a row of 256. Always inlined: out of line GCC
// keeps the partial sums in memory, which is ten times slower.

/// 32 bytes of C on every machine, so that sums do not depend on the width of its registers.
template <class C>
struct Lanes {
  static constexpr std::int64_t count = 32 / std::int64_t{sizeof(C)};
  using Vector [[gnu::vector_size(32)]] = C;
};

// What two lanes become.
struct Sum {
  template <class C>
  C operator()(C a, C b) const {
    return a + b;
  }
};
/// `a` where b is NaN.
struct Larger {
  template <class C>
  C operator()(C a, C b) const {
    return b > a ? b : a;
  }
};

/// Lane k: value(first + k) combined with value(first + lanes + k). Two, for a plain load of one
/// vector becomes a memcpy that GCC splits, and the load of the halves' whole has to wait for it.
template <class C, class Combine, class Value>
[[gnu::always_inline]] inline typename Lanes<C>::Vector two_vectors(std::int64_t first,
                                                                    const Value& value) {
  constexpr std::int64_t count = Lanes<C>::count;
  C lanes[count];
#pragma omp simd
  for (std::int64_t k = 0; k < count; ++k)
    lanes[k] = Combine()(value(first + k), value(first + count + k));
  typename Lanes<C>::Vector vector;
  std::memcpy(&vector, lanes, sizeof vector);
  return vector;
}

/// All lanes in one: halves with halves.
template <class C, class Combine>
[[gnu::always_inline]] inline C across(typename Lanes<C>::Vector v) {
  const Combine combine;
  if constexpr (Lanes<C>::count == 8) {
    v = combine(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3));
    v = combine(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5));
    v = combine(v, __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6));
  } else {
    static_assert(Lanes<C>::count == 4);
    v = combine(v, __builtin_shufflevector(v, v, 2, 3, 0, 1));
    v = combine(v, __builtin_shufflevector(v, v, 1, 0, 3, 2));
  }
  return v[0];
}

/// value(0) … value(count - 1) combined, from `neutral` on. Two vectors of partial results: one
/// would wait for each step, and many partial sums lose fewer bits.
template <class C, class Combine, class Value>
[[gnu::always_inline]] inline C row_reduce(std::int64_t count, C neutral, const Value& value) {
  constexpr std::int64_t step = 2 * Lanes<C>::count;
  using Vector = typename Lanes<C>::Vector;
  const Combine combine;
  Vector v0 = Vector{} + neutral, v1 = v0;
  std::int64_t i = 0;
  for (; i + 2 * step <= count; i += 2 * step) {
    v0 = combine(v0, two_vectors<C, Combine>(i, value));
    v1 = combine(v1, two_vectors<C, Combine>(i + step, value));
  }
  if (i + step <= count) {
    v0 = combine(v0, two_vectors<C, Combine>(i, value));
    i += step;
  }
  C rest = neutral;
  for (; i < count; ++i) rest = combine(rest, value(i));
  return combine(across<C, Combine>(combine(v0, v1)), rest);
}

/// Sum of term(0) … term(count - 1) in C.
template <class C, class Term>
[[gnu::always_inline]] inline C row_sum(std::int64_t count, const Term& term) {
  return row_reduce<C, Sum>(count, C(0), term);
}

/// Largest of value(0) … value(count - 1); -inf over none. NaN is passed over: it comes out of the
/// sum that follows.
template <class C, class Value>
[[gnu::always_inline]] inline C row_max(std::int64_t count, const Value& value) {
  return row_reduce<C, Larger>(count, -std::numeric_limits<C>::infinity(), value);
}

/// Two sums over one row in one pass.
template <class C, class First, class Second>
[[gnu::always_inline]] inline std::pair<C, C> row_sums(std::int64_t count, const First& first,
                                                       const Second& second) {
  constexpr std::int64_t step = 2 * Lanes<C>::count;
  typename Lanes<C>::Vector a0{}, a1{}, b0{}, b1{};
  std::int64_t i = 0;
  for (; i + 2 * step <= count; i += 2 * step) {
    a0 += two_vectors<C, Sum>(i, first);
    b0 += two_vectors<C, Sum>(i, second);
    a1 += two_vectors<C, Sum>(i + step, first);
    b1 += two_vectors<C, Sum>(i + step, second);
  }
  if (i + step <= count) {
    a0 += two_vectors<C, Sum>(i, first);
    b0 += two_vectors<C, Sum>(i, second);
    i += step;
  }
  C rest_a = 0, rest_b = 0;
  for (; i < count; ++i) {
    rest_a += first(i);
    rest_b += second(i);
  }
  return {across<C, Sum>(a0 + a1) + rest_a, across<C, Sum>(b0 + b1) + rest_b};
}

}  // namespace norma::cpu_kernels
