// Sums and maxima over one row, in a fixed order that depends on its length alone.
#pragma once

#include <cstdint>
#include <limits>

namespace norma::cpu_kernels {

/// Sum of term(0) … term(count - 1) in C. Four interleaved vectors of partial sums: one would wait
/// for each addition, and many partial sums lose fewer bits.
template <class C, class Term>
inline C row_sum(std::int64_t count, const Term& term) {
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

/// Largest of value(0) … value(count - 1); -inf over none. NaN is passed over: it comes out of the
/// sum that follows.
template <class C, class Value>
inline C row_max(std::int64_t count, const Value& value) {
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
