// Norms whose statistics are those of a channel over all positions: BatchNorm and its kin. x is
// [outer, channels, inner].
#include "norma/ops/cpu/norm.h"
#include "norma/ops/cpu/norm_row.h"
#include "norma/ops/cpu/parallel.h"

#include <vector>

namespace norma::cpu_kernels {

namespace {

struct Extent {
  std::int64_t outer, channels, inner;
  explicit Extent(const Tensor& x) : outer(x.size(0)), channels(x.size(1)), inner(x.size(2)) {}
  std::int64_t first(std::int64_t o, std::int64_t c) const { return (o * channels + c) * inner; }
};

/// sums1[c] and sums2[c] = sums of term1(index, c) and term2(index, c) over the positions that
/// `mask` (null: none) leaves, in an order that depends on the shape alone.
template <class C, class Term1, class Term2>
void channel_sums(const Extent& extent, const bool* mask, const Term1& term1, const Term2& term2,
                  C* sums1, C* sums2) {
  const auto [outer, channels, inner] = extent;
  std::fill(sums1, sums1 + channels, C(0));
  std::fill(sums2, sums2 + channels, C(0));
  if (inner != 1) {
    parallel_for(channels, 2 * outer * inner, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c)
        for (std::int64_t o = 0; o < extent.outer; ++o) {
          const std::int64_t first = extent.first(o, c);
          const bool* const masked = mask != nullptr ? mask + o * extent.inner : nullptr;
          const auto kept = [=](const auto& term) {
            return [=](std::int64_t i) {
              const C value = term(first + i, c);
              return masked != nullptr && masked[i] ? C(0) : value;
            };
          };
          const auto [a, b] = row_sums<C>(extent.inner, kept(term1), kept(term2));
          sums1[c] += a;
          sums2[c] += b;
        }
    });
    return;
  }
  // Channels side by side: partial sums of whole rows.
  const std::int64_t per_part = rows_per_part(outer);
  const std::int64_t part_count = (outer + per_part - 1) / per_part;
  std::vector<C> parts(static_cast<std::size_t>(2 * part_count * channels));
  C* const first_parts = parts.data();
  parallel_for(part_count, 2 * per_part * channels, [=](std::int64_t begin, std::int64_t end) {
    const std::int64_t count = extent.channels;
    for (std::int64_t part = begin; part < end; ++part) {
      C* const part1 = first_parts + 2 * part * count;
      C* const part2 = part1 + count;
      const std::int64_t last = std::min(extent.outer, (part + 1) * per_part);
      for (std::int64_t o = part * per_part; o < last; ++o) {
        if (mask != nullptr && mask[o]) continue;
        const std::int64_t first = o * count;
#pragma omp simd
        for (std::int64_t c = 0; c < count; ++c) {
          part1[c] += term1(first + c, c);
          part2[c] += term2(first + c, c);
        }
      }
    }
  });
  for (std::int64_t part = 0; part < part_count; ++part)
    for (std::int64_t c = 0; c < channels; ++c) {
      sums1[c] += first_parts[2 * part * channels + c];
      sums2[c] += first_parts[(2 * part + 1) * channels + c];
    }
}

template <class T>
void statistics(const Tensor& x, const Tensor& mask, const Tensor& mean, const Tensor& variance,
                const Tensor& count) {
  using C = accumulate_t<T>;
  const Extent extent(x);
  const bool* const pmask = data_or_null<bool>(mask);
  const std::int64_t positions = extent.outer * extent.inner;
  const std::int64_t kept =
      pmask == nullptr ? positions : positions - std::count(pmask, pmask + positions, true);
  count.data<C>()[0] = static_cast<C>(kept);
  const C n = static_cast<C>(std::max<std::int64_t>(kept, 1));
  const T* const px = x.data<T>();
  C* const pvariance = variance.data<C>();
  std::vector<C> other(static_cast<std::size_t>(extent.channels));
  C* const pother = other.data();
  const auto value = [px](std::int64_t i, std::int64_t) { return static_cast<C>(px[i]); };
  const auto nothing = [](std::int64_t, std::int64_t) { return C(0); };
  if (!mean.defined()) {
    const auto square = [value](std::int64_t i, std::int64_t c) {
      return value(i, c) * value(i, c);
    };
    channel_sums<C>(extent, pmask, square, nothing, pvariance, pother);
    for (std::int64_t c = 0; c < extent.channels; ++c) pvariance[c] /= n;
    return;
  }
  C* const pmean = mean.data<C>();
  channel_sums<C>(extent, pmask, value, nothing, pmean, pother);
  for (std::int64_t c = 0; c < extent.channels; ++c) pmean[c] /= n;
  // Two passes, corrected as in row_statistics.
  const C* const centre = pmean;
  const auto difference = [=](std::int64_t i, std::int64_t c) {
    return static_cast<C>(px[i]) - centre[c];
  };
  const auto square = [=](std::int64_t i, std::int64_t c) {
    return difference(i, c) * difference(i, c);
  };
  channel_sums<C>(extent, pmask, difference, square, pother, pvariance);
  for (std::int64_t c = 0; c < extent.channels; ++c) {
    const C rest = pother[c] / n;
    pmean[c] += rest;
    pvariance[c] = std::max(pvariance[c] / n - rest * rest, C(0));
  }
}

template <class T>
void sums(const Tensor& x, const Tensor& mean, const Tensor& dy, const Tensor& sum_dy,
          const Tensor& sum_dy_d) {
  using C = accumulate_t<T>;
  const T* const px = x.data<T>();
  const T* const pdy = dy.data<T>();
  const std::vector<C> zeros(static_cast<std::size_t>(mean.defined() ? 0 : x.size(1)));
  const C* const centre = mean.defined() ? mean.data<C>() : zeros.data();
  const auto gradient = [pdy](std::int64_t i, std::int64_t) { return static_cast<C>(pdy[i]); };
  const auto product = [=](std::int64_t i, std::int64_t c) {
    return static_cast<C>(pdy[i]) * (static_cast<C>(px[i]) - centre[c]);
  };
  channel_sums<C>(Extent(x), nullptr, gradient, product, sum_dy.data<C>(), sum_dy_d.data<C>());
}

template <class T>
void affine(const Tensor& x, const Tensor& mask, const Tensor& mean, const Tensor& dy,
            const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& out) {
  using C = accumulate_t<T>;
  const Extent extent(x);
  const std::vector<C> zeros(static_cast<std::size_t>(extent.channels));
  const auto by_channel = [&](const Tensor& tensor) {
    return tensor.defined() ? tensor.data<C>() : zeros.data();
  };
  const C* const centre = by_channel(mean);
  const C* const pa = by_channel(a);
  const C* const pb = by_channel(b);
  const C* const pc = by_channel(c);
  const bool* const pmask = data_or_null<bool>(mask);
  const T* const px = x.data<T>();
  const T* const pdy = data_or_null<T>(dy);
  T* const po = out.data<T>();
  parallel_for(
      extent.outer, 2 * extent.channels * extent.inner, [=](std::int64_t begin, std::int64_t end) {
        // One row of `count` elements whose channel is channel_of(i).
        const auto store = [=](std::int64_t first, std::int64_t count, const auto& channel_of,
                               const auto& keep) {
          const auto own = [=](std::int64_t i) {
            const std::int64_t k = channel_of(i);
            return keep(i) ? pb[k] * (static_cast<C>(px[first + i]) - centre[k]) + pc[k] : C(0);
          };
          if (pdy == nullptr) {
#pragma omp simd
            for (std::int64_t i = 0; i < count; ++i) po[first + i] = static_cast<T>(own(i));
          } else {
#pragma omp simd
            for (std::int64_t i = 0; i < count; ++i)
              po[first + i] =
                  static_cast<T>(pa[channel_of(i)] * static_cast<C>(pdy[first + i]) + own(i));
          }
        };
        for (std::int64_t o = begin; o < end; ++o) {
          const bool* const masked = pmask != nullptr ? pmask + o * extent.inner : nullptr;
          if (extent.inner == 1) {
            const bool k = masked == nullptr || !masked[0];
            store(
                o * extent.channels, extent.channels, [](std::int64_t i) { return i; },
                [k](std::int64_t) { return k; });
            continue;
          }
          for (std::int64_t channel = 0; channel < extent.channels; ++channel) {
            const auto same = [channel](std::int64_t) { return channel; };
            if (masked != nullptr)
              store(extent.first(o, channel), extent.inner, same,
                    [masked](std::int64_t i) { return !masked[i]; });
            else
              store(extent.first(o, channel), extent.inner, same,
                    [](std::int64_t) { return true; });
          }
        }
      });
}

void column_statistics(const Tensor& x, const Tensor& mask, const Tensor& mean,
                       const Tensor& variance, const Tensor& count) {
  visit_floating(x.dtype(), "column_statistics",
                 [&]<class T>(TypeTag<T>) { statistics<T>(x, mask, mean, variance, count); });
}

void column_sums(const Tensor& x, const Tensor& mean, const Tensor& dy, const Tensor& sum_dy,
                 const Tensor& sum_dy_d) {
  visit_floating(x.dtype(), "column_sums",
                 [&]<class T>(TypeTag<T>) { sums<T>(x, mean, dy, sum_dy, sum_dy_d); });
}

void column_affine(const Tensor& x, const Tensor& mask, const Tensor& mean, const Tensor& dy,
                   const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& out) {
  visit_floating(x.dtype(), "column_affine",
                 [&]<class T>(TypeTag<T>) { affine<T>(x, mask, mean, dy, a, b, c, out); });
}

}  // namespace

void add_column_norm_kernels(Backend& table) {
  table.column_statistics = column_statistics;
  table.column_sums = column_sums;
  table.column_affine = column_affine;
}

}  // namespace norma::cpu_kernels
