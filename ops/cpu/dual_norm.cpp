// Two gains on one normalized row: both norms of a parallel block for the statistics of one.
#include "norma/ops/cpu/norm.h"
#include "norma/ops/cpu/norm_row.h"
#include "norma/ops/cpu/parallel.h"

#include <array>
#include <vector>

namespace norma::cpu_kernels {

namespace {

/// weight_offset + weight in the accumulate type; ones without weight.
template <class T>
std::vector<accumulate_t<T>> gains_of(const Tensor& weight, std::int64_t width,
                                      const RowNormParams& p) {
  using C = accumulate_t<T>;
  std::vector<C> gains(static_cast<std::size_t>(width), C(1));
  if (weight.defined())
    for (std::int64_t i = 0; i < width; ++i)
      gains[static_cast<std::size_t>(i)] =
          static_cast<C>(p.weight_offset) + static_cast<C>(weight.data<T>()[i]);
  return gains;
}

template <class T>
void forward(const Tensor& x, const Tensor& weight1, const Tensor& bias1, const Tensor& weight2,
             const Tensor& bias2, const RowNormParams& p, const Tensor& out1, const Tensor& out2,
             const Tensor& mean, const Tensor& rstd) {
  using C = accumulate_t<T>;
  const std::int64_t width = x.size(1);
  const auto gains1 = gains_of<T>(weight1, width, p), gains2 = gains_of<T>(weight2, width, p);
  const C* const pg1 = gains1.data();
  const C* const pg2 = gains2.data();
  const T* const pb1 = data_or_null<T>(bias1);
  const T* const pb2 = data_or_null<T>(bias2);
  const T* const px = x.data<T>();
  T* const po1 = out1.data<T>();
  T* const po2 = out2.data<T>();
  C* const pmean = data_or_null<C>(mean);
  C* const prstd = data_or_null<C>(rstd);
  parallel_for(x.size(0), 3 * width, [=, &p](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* const rx = px + row * width;
      const auto [m, rest, r] = row_statistics<C>(row_kind(p), rx, width, p);
      const C row_mean = m, row_rest = rest, row_rstd = r;
      const auto store = [=](const C* gain, const T* bias, T* out) {
        const auto value = [=](std::int64_t i) {
          return ((static_cast<C>(rx[i]) - row_mean) - row_rest) * row_rstd * gain[i];
        };
        if (bias != nullptr) {
#pragma omp simd
          for (std::int64_t i = 0; i < width; ++i)
            out[i] = static_cast<T>(value(i) + static_cast<C>(bias[i]));
        } else {
#pragma omp simd
          for (std::int64_t i = 0; i < width; ++i) out[i] = static_cast<T>(value(i));
        }
      };
      store(pg1, pb1, po1 + row * width);
      store(pg2, pb2, po2 + row * width);
      if (pmean != nullptr) pmean[row] = m + rest;
      if (prstd != nullptr) prstd[row] = r;
    }
  });
}

template <class T>
void backward(const Tensor& x, const Tensor& weight1, const Tensor& weight2, const Tensor& mean,
              const Tensor& rstd, const Tensor& dy1, const Tensor& dy2, const RowNormParams& p,
              const Tensor& dx, const std::array<Tensor, 4>& dparameters) {
  using C = accumulate_t<T>;
  const std::int64_t rows = x.size(0);
  const std::int64_t width = x.size(1);
  const auto gains1 = gains_of<T>(weight1, width, p), gains2 = gains_of<T>(weight2, width, p);
  const C* const pg1 = gains1.data();
  const C* const pg2 = gains2.data();
  const T* const px = x.data<T>();
  const C* const pmean = data_or_null<C>(mean);
  const C* const prstd = rstd.data<C>();
  const T* const pdy1 = dy1.data<T>();
  const T* const pdy2 = dy2.data<T>();
  T* const pdx = data_or_null<T>(dx);
  const std::int64_t per_part = rows_per_part(rows);
  const std::int64_t part_count = (rows + per_part - 1) / per_part;
  // In the order of dparameters: weight1, bias1, weight2, bias2.
  std::array<std::vector<C>, 4> parts;
  std::array<C*, 4> sums{};
  for (std::size_t k = 0; k < 4; ++k) {
    if (!dparameters[k].defined()) continue;
    parts[k].resize(static_cast<std::size_t>(part_count * width));
    sums[k] = parts[k].data();
  }
  parallel_for(part_count, 6 * per_part * width, [=, &p](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      const std::int64_t last = std::min(rows, (part + 1) * per_part);
      for (std::int64_t row = part * per_part; row < last; ++row) {
        const T* const rx = px + row * width;
        const T* const rdy1 = pdy1 + row * width;
        const T* const rdy2 = pdy2 + row * width;
        const C r = prstd[row];
        const C m = pmean != nullptr ? pmean[row] : C(0);
        if (pdx != nullptr) {
          const auto gradient = [=](std::int64_t i) {
            return static_cast<C>(rdy1[i]) * pg1[i] + static_cast<C>(rdy2[i]) * pg2[i];
          };
          if (p.centred)
            row_gradient<RowKind::centred, C>(rx, width, m, r, p, gradient, pdx + row * width);
          else
            row_gradient<RowKind::plain, C>(rx, width, m, r, p, gradient, pdx + row * width);
        }
        for (std::size_t k = 0; k < 4; ++k) {
          if (sums[k] == nullptr) continue;
          C* const sum = sums[k] + part * width;
          const T* const rdy = k < 2 ? rdy1 : rdy2;
          if (k % 2 == 0) {
#pragma omp simd
            for (std::int64_t i = 0; i < width; ++i)
              sum[i] += static_cast<C>(rdy[i]) * ((static_cast<C>(rx[i]) - m) * r);
          } else {
#pragma omp simd
            for (std::int64_t i = 0; i < width; ++i) sum[i] += static_cast<C>(rdy[i]);
          }
        }
      }
    }
  });
  for (std::size_t k = 0; k < 4; ++k) {
    if (!dparameters[k].defined()) continue;
    const C* const from = parts[k].data();
    T* const to = dparameters[k].data<T>();
    parallel_for(width, part_count, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        C sum = 0;
        for (std::int64_t part = 0; part < part_count; ++part) sum += from[part * width + i];
        to[i] = static_cast<T>(sum);
      }
    });
  }
}

void dual_norm(const Tensor& x, const Tensor& weight1, const Tensor& bias1, const Tensor& weight2,
               const Tensor& bias2, const RowNormParams& p, const Tensor& out1, const Tensor& out2,
               const Tensor& mean, const Tensor& rstd) {
  visit_floating(x.dtype(), "dual_norm", [&]<class T>(TypeTag<T>) {
    forward<T>(x, weight1, bias1, weight2, bias2, p, out1, out2, mean, rstd);
  });
}

void dual_norm_backward(const Tensor& x, const Tensor& weight1, const Tensor& weight2,
                        const Tensor& mean, const Tensor& rstd, const Tensor& dy1,
                        const Tensor& dy2, const RowNormParams& p, const Tensor& dx,
                        const Tensor& dweight1, const Tensor& dbias1, const Tensor& dweight2,
                        const Tensor& dbias2) {
  visit_floating(x.dtype(), "dual_norm_backward", [&]<class T>(TypeTag<T>) {
    backward<T>(x, weight1, weight2, mean, rstd, dy1, dy2, p, dx,
                {dweight1, dbias1, dweight2, dbias2});
  });
}

}  // namespace

void add_dual_norm_kernels(Backend& table) {
  table.dual_norm = dual_norm;
  table.dual_norm_backward = dual_norm_backward;
}

}  // namespace norma::cpu_kernels
