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
  C mean;  ///< 0 where not centred; the sum of x where compressed
  C rest;  ///< what rounding lost of the mean
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

template <RowKind kind, class C, class T>
[[gnu::always_inline]] inline RowStatistics<C> row_statistics(const T* x, std::int64_t width,
                                                              const RowNormParams& p) {
  if constexpr (kind == RowKind::centred) {
    const C n = static_cast<C>(width);
    const C mean = row_sum<C>(width, [x](std::int64_t i) { return static_cast<C>(x[i]); }) / n;
    // The corrected two-pass algorithm: differences from a rounded mean have a mean of their own,
    // which is all that is left to lose when the mean is large beside the spread. (Chan, Golub,
    // LeVeque: Algorithms for computing the sample variance, 1983.)
    const auto difference = [x, mean](std::int64_t i) { return static_cast<C>(x[i]) - mean; };
    const auto [sum, squares] = row_sums<C>(width, difference, [difference](std::int64_t i) {
      const C d = difference(i);
      return d * d;
    });
    const C rest = sum / n;
    return {mean, rest, reciprocal_divisor<C>(squares / n - rest * rest, p)};
  } else {
    const C divisor = static_cast<C>(p.divisor);
    const auto value = [x](std::int64_t i) { return static_cast<C>(x[i]); };
    const auto square = [x](std::int64_t i) {
      const C v = static_cast<C>(x[i]);
      return v * v;
    };
    if constexpr (kind == RowKind::compressed) {
      const auto [sum, squares] = row_sums<C>(width, value, square);
      return {sum, C(0), reciprocal_divisor<C>((squares + sum * sum) / divisor, p)};
    } else {
      const C squares = row_sum<C>(p.statistic_width, square);
      return {C(0), C(0), reciprocal_divisor<C>(squares / divisor, p)};
    }
  }
}

/// The same for a kind that is known at run time.
template <class C, class T>
RowStatistics<C> row_statistics(RowKind kind, const T* x, std::int64_t width,
                                const RowNormParams& p) {
  switch (kind) {
    case RowKind::centred:
      return row_statistics<RowKind::centred, C>(x, width, p);
    case RowKind::compressed:
      return row_statistics<RowKind::compressed, C>(x, width, p);
    case RowKind::plain:
      break;
  }
  return row_statistics<RowKind::plain, C>(x, width, p);
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

/// out = r (gradient - mean(gradient) - v * projection), the gradient by x. `mean` as in
/// RowStatistics.
template <RowKind kind, class C, class T, class Gradient, class Out>
[[gnu::always_inline]] inline void row_gradient(const T* x, std::int64_t width, C mean, C r,
                                                const RowNormParams& p, const Gradient& gradient,
                                                Out* out) {
  const auto normalized = [=](std::int64_t i) {
    if constexpr (kind == RowKind::centred)
      return (static_cast<C>(x[i]) - mean) * r;
    else
      return static_cast<C>(x[i]) * r;
  };
  const auto product = [=](std::int64_t i) { return gradient(i) * normalized(i); };
  C mean_g = 0;
  C share = 0;
  if constexpr (kind == RowKind::centred) {
    const auto [sum_g, sum_gh] = row_sums<C>(width, gradient, product);
    mean_g = sum_g / static_cast<C>(width);
    share = projection<C>(sum_gh, r, p);
  } else {
    share = projection<C>(row_sum<C>(width, product), r, p);
  }
  const std::int64_t projected = kind == RowKind::plain ? p.statistic_width : width;
#pragma omp simd
  for (std::int64_t i = 0; i < projected; ++i) {
    C v = normalized(i);
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
