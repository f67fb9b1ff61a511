// One row of a norm: its statistics and its gradient. For the kernels of the row norms.
#pragma once

#include "norma/ops/cpu/row.h"
#include "norma/ops/norm_params.h"

#include "norma/core/tensor.h"

#include <algorithm>
#include <cmath>

namespace norma::cpu_kernels {

template <class T>
T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

/// Which statistics a row has; a compile-time choice, for it decides the loops.
enum class RowKind : std::uint8_t {
  plain,       ///< mean (or sum) of squares
  centred,     ///< mean and variance
  compressed,  ///< mean of squares of a row whose last element, -sum(x), is not stored
};

inline RowKind row_kind(const RowNormParams& p) {
  return p.centred ? RowKind::centred : p.compressed ? RowKind::compressed : RowKind::plain;
}

template <class C>
struct RowStatistics {
  C mean;  ///< an estimate; 0 where not centred; the sum of x where compressed
  C rest;  ///< mean of x - the estimate
  C rstd;
};

/// 1 / D from the mean of squares.
template <class C>
inline C reciprocal_divisor(C mean_square, const RowNormParams& p) {
  const C eps = static_cast<C>(p.eps);
  if (p.eps_rule == EpsRule::inside) return C(1) / std::sqrt(mean_square + eps);
  const C root = std::sqrt(mean_square);
  return C(1) / (p.eps_rule == EpsRule::outside ? root + eps : std::max(root, eps));
}

/// An estimate of a row's mean: that of its first eighth. Not farther from the mean than sqrt(8)
/// standard deviations, whatever the row holds: m (estimate - mean)^2, over those m elements, is at
/// most the sum of squares over all n <= 8 m.
template <class C, class T>
[[gnu::always_inline]] inline C row_centre(const T* x, std::int64_t width) {
  const std::int64_t some = std::max((width + 7) / 8, std::min<std::int64_t>(width, 32));
  const C share = C(1) / static_cast<C>(some);
  return share * row_sum<C>(some, [x](std::int64_t i) { return static_cast<C>(x[i]); });
}

/// Statistics with the mean of squares (about the mean, where centred) for rstd.
/// `centre`: row_centre, of a centred row.
template <RowKind kind, class C, class T>
[[gnu::always_inline]] inline RowStatistics<C> row_moments(const T* x, std::int64_t width,
                                                           const RowNormParams& p, C centre) {
  const auto value = [x](std::int64_t i) { return static_cast<C>(x[i]); };
  const auto square_of = [](const auto& term) {
    return [term](std::int64_t i) {
      const C v = term(i);
      return v * v;
    };
  };
  if constexpr (kind == RowKind::centred) {
    // The corrected two-pass algorithm, whose first pass an estimate spares: the sums of x - centre
    // give what it misses of the mean, and by how much the squares are too large. These are at most
    // nine times the variance, so the difference loses three bits at worst, and none as a rule.
    // (Chan, Golub, LeVeque: Algorithms for computing the sample variance, 1983.)
    const C share = C(1) / static_cast<C>(width);
    const auto difference = [=](std::int64_t i) { return value(i) - centre; };
    const auto [sum, squares] = row_sums<C>(width, difference, square_of(difference));
    const C rest = share * sum;
    return {centre, rest, std::max(share * squares - rest * rest, C(0))};
  } else {
    const C share = C(1) / static_cast<C>(p.divisor);
    if constexpr (kind == RowKind::compressed) {
      const auto [sum, squares] = row_sums<C>(width, value, square_of(value));
      return {sum, C(0), share * (squares + sum * sum)};
    } else {
      return {C(0), C(0), share * row_sum<C>(p.statistic_width, square_of(value))};
    }
  }
}

/// Rows that are processed together, step by step: what a step waits for at the end of a row (its
/// sum across the vector, a division) hides behind the next row. They stay in the first cache.
inline constexpr std::int64_t max_rows_at_once = 8;
inline std::int64_t rows_at_once(std::int64_t width) {
  return std::clamp<std::int64_t>(2048 / std::max<std::int64_t>(width, 1), 1, max_rows_at_once);
}

/// The statistics of `count` rows, at most max_rows_at_once, row k at x(k).
template <class C, class Rows>
[[gnu::always_inline]] inline void statistics_of_rows(RowKind kind, const Rows& x,
                                                      std::int64_t count, std::int64_t width,
                                                      const RowNormParams& p,
                                                      RowStatistics<C>* statistics) {
  if (kind == RowKind::centred) {
    C centres[max_rows_at_once];
    for (std::int64_t k = 0; k < count; ++k) centres[k] = row_centre<C>(x(k), width);
    for (std::int64_t k = 0; k < count; ++k)
      statistics[k] = row_moments<RowKind::centred, C>(x(k), width, p, centres[k]);
  } else if (kind == RowKind::plain) {
    for (std::int64_t k = 0; k < count; ++k)
      statistics[k] = row_moments<RowKind::plain, C>(x(k), width, p, C(0));
  } else {
    for (std::int64_t k = 0; k < count; ++k)
      statistics[k] = row_moments<RowKind::compressed, C>(x(k), width, p, C(0));
  }
  for (std::int64_t k = 0; k < count; ++k)
    statistics[k].rstd = reciprocal_divisor<C>(statistics[k].rstd, p);
}

/// Those of one row.
template <class C, class T>
RowStatistics<C> row_statistics(RowKind kind, const T* x, std::int64_t width,
                                const RowNormParams& p) {
  RowStatistics<C> statistics;
  statistics_of_rows<C>(
      kind, [x](std::int64_t) { return x; }, 1, width, p, &statistics);
  return statistics;
}

/// G c / r of RowNormParams: what of v is taken from g.
template <class C>
inline C projection(C sum_gh, C r, const RowNormParams& p) {
  const C share = sum_gh / static_cast<C>(p.divisor);
  if (p.eps_rule == EpsRule::inside) return share;
  const C eps = static_cast<C>(p.eps);
  if (p.eps_rule == EpsRule::floor) return r * eps < C(1) ? share : C(0);
  const C root = C(1) / r - eps;
  return root > C(0) ? share / (root * r) : C(0);
}

/// What of the gradient of a row is known once its sums are.
template <class C>
struct RowGradient {
  C mean_g;  ///< mean(gradient), where centred
  C share;   ///< what of v is taken
};

template <RowKind kind, class C, class T>
[[gnu::always_inline]] inline C normalized(const T* x, std::int64_t i, C mean, C r) {
  if constexpr (kind == RowKind::centred)
    return (static_cast<C>(x[i]) - mean) * r;
  else
    return static_cast<C>(x[i]) * r;
}

template <RowKind kind, class C, class T, class Gradient>
[[gnu::always_inline]] inline RowGradient<C> row_gradient_sums(const T* x, std::int64_t width,
                                                               C mean, C r, const RowNormParams& p,
                                                               const Gradient& gradient) {
  const auto product = [=](std::int64_t i) {
    return gradient(i) * normalized<kind, C>(x, i, mean, r);
  };
  if constexpr (kind == RowKind::centred) {
    const auto [sum_g, sum_gh] = row_sums<C>(width, gradient, product);
    return {sum_g / static_cast<C>(width), projection<C>(sum_gh, r, p)};
  } else {
    return {C(0), projection<C>(row_sum<C>(width, product), r, p)};
  }
}

/// out = r (gradient - mean(gradient) - v * projection), the gradient by x. `mean` as in
/// RowStatistics.
template <RowKind kind, class C, class T, class Gradient, class Out>
[[gnu::always_inline]] inline void row_gradient(const T* x, std::int64_t width, C mean, C r,
                                                const RowNormParams& p, const Gradient& gradient,
                                                Out* out) {
  const RowGradient<C> sums = row_gradient_sums<kind, C>(x, width, mean, r, p, gradient);
  const C mean_g = sums.mean_g, share = sums.share;
  const std::int64_t projected = kind == RowKind::plain ? p.statistic_width : width;
#pragma omp simd
  for (std::int64_t i = 0; i < projected; ++i) {
    C v = normalized<kind, C>(x, i, mean, r);
    if constexpr (kind == RowKind::compressed) v += mean * r;
    out[i] = static_cast<Out>(r * ((gradient(i) - mean_g) - v * share));
  }
  for (std::int64_t i = projected; i < width; ++i) out[i] = static_cast<Out>(r * gradient(i));
}

/// Rows whose parameter gradients are summed by one task. A function of the shape alone, so that
/// the order of the sums does not depend on threads: at most 64 partial sums.
inline std::int64_t rows_per_part(std::int64_t rows, std::int64_t at_least = 8) {
  return std::max<std::int64_t>(at_least, (rows + 63) / 64);
}

}  // namespace norma::cpu_kernels
