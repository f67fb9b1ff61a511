// Norms whose statistics are those of a row. One forward and one backward serve them all; a
// compile-time policy says which statistics. A new member of the family is a new policy, not a new
// kernel.
#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"
#include "norma/ops/cpu/row.h"

#include <cmath>
#include <vector>

namespace norma::cpu_kernels {

namespace {

/// LayerNorm: mean and variance.
struct Centred {
  static constexpr bool subtracts_mean = true;
};
/// RMSNorm: mean square.
struct NotCentred {
  static constexpr bool subtracts_mean = false;
};

template <class T>
T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

template <class C>
struct RowStatistics {
  C mean;  ///< 0 where not centred
  C rest;  ///< what rounding lost of the mean
  C rstd;
};

template <class Policy, class C, class T>
RowStatistics<C> row_statistics(const T* x, std::int64_t width, C eps) {
  const C n = static_cast<C>(width);
  if constexpr (Policy::subtracts_mean) {
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
    return {mean, rest, C(1) / std::sqrt((squares / n - rest * rest) + eps)};
  } else {
    const C squares = row_sum<C>(width, [x](std::int64_t i) {
      const C v = static_cast<C>(x[i]);
      return v * v;
    });
    return {C(0), C(0), C(1) / std::sqrt(squares / n + eps)};
  }
}

/// out = (x - mean) * rstd * weight + bias by rows; mean and rstd are kept where someone wants
/// them.
template <class Policy, class T>
void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
             const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  using C = accumulate_t<T>;
  const std::int64_t width = x.size(1);
  const T* const px = x.data<T>();
  const T* const pw = data_or_null<T>(weight);
  const T* const pb = data_or_null<T>(bias);
  T* const po = out.data<T>();
  C* const pmean = data_or_null<C>(mean);
  C* const prstd = data_or_null<C>(rstd);
  parallel_for(x.size(0), 2 * width, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* const rx = px + row * width;
      T* const ro = po + row * width;
      const auto [m, rest, r] = row_statistics<Policy, C>(rx, width, static_cast<C>(eps));
      const auto store = [=](const auto& scale) {
        const C row_mean = m, row_rest = rest;
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) {
          C d = static_cast<C>(rx[i]);
          if constexpr (Policy::subtracts_mean) d = (d - row_mean) - row_rest;
          ro[i] = static_cast<T>(scale(d, i));
        }
      };
      const C row_rstd = r;
      if (pw != nullptr && pb != nullptr)
        store([=](C d, std::int64_t i) {
          return d * row_rstd * static_cast<C>(pw[i]) + static_cast<C>(pb[i]);
        });
      else if (pw != nullptr)
        store([=](C d, std::int64_t i) { return d * row_rstd * static_cast<C>(pw[i]); });
      else if (pb != nullptr)
        store([=](C d, std::int64_t i) { return d * row_rstd + static_cast<C>(pb[i]); });
      else
        store([=](C d, std::int64_t) { return d * row_rstd; });
      if (pmean != nullptr) pmean[row] = m + rest;
      if (prstd != nullptr) prstd[row] = r;
    }
  });
}

/// Rows whose parameter gradients are summed by one task. A function of the shape alone, so that
/// the order of the sums does not depend on threads: at most 64 partial sums.
std::int64_t rows_per_part(std::int64_t rows) {
  return std::max<std::int64_t>(8, (rows + 63) / 64);
}

/// out[i] = sum of parts[p][i] in the order of p.
template <class T, class C>
void sum_parts(const std::vector<C>& parts, std::int64_t count, std::int64_t width, T* out) {
  parallel_for(width, count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      C sum = 0;
      for (std::int64_t p = 0; p < count; ++p)
        sum += parts[static_cast<std::size_t>(p * width + i)];
      out[i] = static_cast<T>(sum);
    }
  });
}

/// With g = dy * weight and h = (x - mean) * rstd:
/// dx = rstd (g - mean(g) - h mean(g h)), where mean(g) only if centred; dweight = sum of dy h,
/// dbias = sum of dy over rows.
template <class Policy, class T>
void backward(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& rstd,
              const Tensor& dy, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  using C = accumulate_t<T>;
  const std::int64_t rows = x.size(0);
  const std::int64_t width = x.size(1);
  const T* const px = x.data<T>();
  const T* const pw = data_or_null<T>(weight);
  const C* const pmean = data_or_null<C>(mean);
  const C* const prstd = rstd.data<C>();
  const T* const pdy = dy.data<T>();
  T* const pdx = data_or_null<T>(dx);

  const std::int64_t per_part = rows_per_part(rows);
  const std::int64_t part_count = (rows + per_part - 1) / per_part;
  std::vector<C> weight_parts(dweight.defined() ? static_cast<std::size_t>(part_count * width) : 0);
  std::vector<C> bias_parts(dbias.defined() ? static_cast<std::size_t>(part_count * width) : 0);
  C* const weight_sums = dweight.defined() ? weight_parts.data() : nullptr;
  C* const bias_sums = dbias.defined() ? bias_parts.data() : nullptr;

  const auto row_gradient = [=](std::int64_t row, const auto& gradient, C m, C r) {
    const T* const rx = px + row * width;
    T* const rdx = pdx + row * width;
    const auto normalized = [=](std::int64_t i) {
      if constexpr (Policy::subtracts_mean)
        return (static_cast<C>(rx[i]) - m) * r;
      else
        return static_cast<C>(rx[i]) * r;
    };
    const C n = static_cast<C>(width);
    const auto product = [=](std::int64_t i) { return gradient(i) * normalized(i); };
    C mean_g = 0;
    C mean_gh = 0;
    if constexpr (Policy::subtracts_mean) {
      const auto [sum_g, sum_gh] = row_sums<C>(width, gradient, product);
      mean_g = sum_g / n;
      mean_gh = sum_gh / n;
    } else {
      mean_gh = row_sum<C>(width, product) / n;
    }
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i)
      rdx[i] = static_cast<T>(r * ((gradient(i) - mean_g) - normalized(i) * mean_gh));
  };

  parallel_for(part_count, 4 * per_part * width, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      const std::int64_t last = std::min(rows, (part + 1) * per_part);
      for (std::int64_t row = part * per_part; row < last; ++row) {
        const T* const rx = px + row * width;
        const T* const rdy = pdy + row * width;
        const C r = prstd[row];
        C m = 0;
        if constexpr (Policy::subtracts_mean) m = pmean[row];
        if (pdx != nullptr && pw != nullptr)
          row_gradient(
              row,
              [rdy, pw](std::int64_t i) { return static_cast<C>(rdy[i]) * static_cast<C>(pw[i]); },
              m, r);
        else if (pdx != nullptr)
          row_gradient(
              row, [rdy](std::int64_t i) { return static_cast<C>(rdy[i]); }, m, r);
        C* const row_weight_sums = weight_sums != nullptr ? weight_sums + part * width : nullptr;
        C* const row_bias_sums = bias_sums != nullptr ? bias_sums + part * width : nullptr;
        const auto weight_term = [=](std::int64_t i) {
          return static_cast<C>(rdy[i]) * ((static_cast<C>(rx[i]) - m) * r);
        };
        if (weight_sums != nullptr && bias_sums != nullptr) {
#pragma omp simd
          for (std::int64_t i = 0; i < width; ++i) {
            row_weight_sums[i] += weight_term(i);
            row_bias_sums[i] += static_cast<C>(rdy[i]);
          }
        } else if (weight_sums != nullptr) {
#pragma omp simd
          for (std::int64_t i = 0; i < width; ++i) row_weight_sums[i] += weight_term(i);
        } else if (bias_sums != nullptr) {
#pragma omp simd
          for (std::int64_t i = 0; i < width; ++i) row_bias_sums[i] += static_cast<C>(rdy[i]);
        }
      }
    }
  });
  if (dweight.defined()) sum_parts(weight_parts, part_count, width, dweight.data<T>());
  if (dbias.defined()) sum_parts(bias_parts, part_count, width, dbias.data<T>());
}

void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  visit_floating(x.dtype(), "layer_norm", [&]<class T>(TypeTag<T>) {
    forward<Centred, T>(x, weight, bias, eps, out, mean, rstd);
  });
}

void layer_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& mean,
                         const Tensor& rstd, const Tensor& dy, const Tensor& dx,
                         const Tensor& dweight, const Tensor& dbias) {
  visit_floating(x.dtype(), "layer_norm_backward", [&]<class T>(TypeTag<T>) {
    backward<Centred, T>(x, weight, mean, rstd, dy, dx, dweight, dbias);
  });
}

void rms_norm(const Tensor& x, const Tensor& weight, double eps, const Tensor& out,
              const Tensor& rstd) {
  visit_floating(x.dtype(), "rms_norm", [&]<class T>(TypeTag<T>) {
    forward<NotCentred, T>(x, weight, {}, eps, out, {}, rstd);
  });
}

void rms_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& rstd, const Tensor& dy,
                       const Tensor& dx, const Tensor& dweight) {
  visit_floating(x.dtype(), "rms_norm_backward", [&]<class T>(TypeTag<T>) {
    backward<NotCentred, T>(x, weight, {}, rstd, dy, dx, dweight, {});
  });
}

}  // namespace

void add_norm_kernels(Backend& table) {
  table.layer_norm = layer_norm;
  table.layer_norm_backward = layer_norm_backward;
  table.rms_norm = rms_norm;
  table.rms_norm_backward = rms_norm_backward;
}

}  // namespace norma::cpu_kernels
