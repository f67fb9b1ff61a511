// Sums and maxima over one row, in a fixed order that depends on its length alone.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

namespace norma::cpu_kernels {

// Always inlined: out of line GCC keeps the partial sums in memory, which is ten times slower.

/// Sum of term(0) … term(count - 1) in C. Four interleaved vectors of partial sums: one would wait
/// for each addition, and many partial sums lose fewer bits.
template <class C, class Term>
[[gnu::always_inline]] inline C row_sum(std::int64_t count, Term term) {
  const std::int64_t quarter = count / 4;
  C s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
  for (std::int64_t i = 0; i < quarter; ++i) {
    s0 += term(i);
    s1 += term(quarter + i);
    s2 += term(2 * quarter + i);
    s3 += term(3 * quarter + i);
  }
  for (std::int64_t i = 4 * quarter; i < count; ++i) s0 += term(i);
  return (s0 + s1) + (s2 + s3);
}

/// Two sums over one row in one pass.
template <class C, class First, class Second>
[[gnu::always_inline]] inline std::pair<C, C> row_sums(std::int64_t count, First first,
                                                       Second second) {
  const std::int64_t half = count / 2;
  C a0 = 0, a1 = 0, b0 = 0, b1 = 0;
#pragma omp simd reduction(+ : a0, a1, b0, b1)
  for (std::int64_t i = 0; i < half; ++i) {
    a0 += first(i);
    a1 += first(half + i);
    b0 += second(i);
    b1 += second(half + i);
  }
  if (count % 2 != 0) {
    a0 += first(count - 1);
    b0 += second(count - 1);
  }
  return {a0 + a1, b0 + b1};
}

/// Largest of value(0) … value(count - 1); -inf over none. NaN is passed over: it comes out of the
/// sum that follows.
template <class C, class Value>
[[gnu::always_inline]] inline C row_max(std::int64_t count, Value value) {
  const std::int64_t quarter = count / 4;
  constexpr C lowest = -std::numeric_limits<C>::infinity();
  C m0 = lowest, m1 = lowest, m2 = lowest, m3 = lowest;
#pragma omp simd reduction(max : m0, m1, m2, m3)
  for (std::int64_t i = 0; i < quarter; ++i) {
    const C v0 = value(i), v1 = value(quarter + i);
    const C v2 = value(2 * quarter + i), v3 = value(3 * quarter + i);
    m0 = v0 > m0 ? v0 : m0;
    m1 = v1 > m1 ? v1 : m1;
    m2 = v2 > m2 ? v2 : m2;
    m3 = v3 > m3 ? v3 : m3;
  }
  for (std::int64_t i = 4 * quarter; i < count; ++i) {
    const C v = value(i);
    m0 = v > m0 ? v : m0;
  }
  const C m01 = m0 > m1 ? m0 : m1;
  const C m23 = m2 > m3 ? m2 : m3;
  return m01 > m23 ? m01 : m23;
}

}  // namespace norma::cpu_kernels
