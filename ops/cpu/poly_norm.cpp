// PolyNorm: w0 n(x^3) + w1 n(x^2) + w2 n(x) + bias, n(u) = u / sqrt(mean(u^2) + eps).
#include "norma/ops/cpu/norm.h"
#include "norma/ops/cpu/norm_row.h"
#include "norma/ops/cpu/parallel.h"

#include <array>
#include <vector>

namespace norma::cpu_kernels {

namespace {

template <class T>
void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
             const Tensor& out, const Tensor& rstd) {
  using C = accumulate_t<T>;
  const std::int64_t width = x.size(1);
  const T* const px = x.data<T>();
  T* const po = out.data<T>();
  C* const prstd = data_or_null<C>(rstd);
  const T* const pw = weight.data<T>();
  const C w0 = static_cast<C>(pw[0]), w1 = static_cast<C>(pw[1]), w2 = static_cast<C>(pw[2]);
  const C b = bias.defined() ? static_cast<C>(bias.data<T>()[0]) : C(0);
  const C n = static_cast<C>(width), e = static_cast<C>(eps);
  parallel_for(x.size(0), 4 * width, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* const rx = px + row * width;
      T* const ro = po + row * width;
      const auto square = [rx](std::int64_t i) {
        const C v = static_cast<C>(rx[i]);
        return v * v;
      };
      const auto [sum2, sum4] =
          row_sums<C>(width, square, [square](std::int64_t i) { return square(i) * square(i); });
      const C sum6 =
          row_sum<C>(width, [square](std::int64_t i) { return square(i) * square(i) * square(i); });
      const C r0 = C(1) / std::sqrt(sum6 / n + e);
      const C r1 = C(1) / std::sqrt(sum4 / n + e);
      const C r2 = C(1) / std::sqrt(sum2 / n + e);
      const C a0 = w0 * r0, a1 = w1 * r1, a2 = w2 * r2;
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) {
        const C v = static_cast<C>(rx[i]);
        ro[i] = static_cast<T>(((a0 * v + a1) * v + a2) * v + b);
      }
      if (prstd != nullptr) {
        prstd[3 * row] = r0;
        prstd[3 * row + 1] = r1;
        prstd[3 * row + 2] = r2;
      }
    }
  });
}

/// With S_p = sum of dy x^p: dx = sum over p of w_p p x^(p-1) (r_p dy - r_p^3 S_p x^p / n),
/// dw_p = sum over rows of r_p S_p, dbias = sum of dy.
template <class T>
void backward(const Tensor& x, const Tensor& weight, const Tensor& rstd, const Tensor& dy,
              const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  using C = accumulate_t<T>;
  const std::int64_t rows = x.size(0);
  const std::int64_t width = x.size(1);
  const T* const px = x.data<T>();
  const T* const pdy = dy.data<T>();
  const C* const prstd = rstd.data<C>();
  T* const pdx = data_or_null<T>(dx);
  const T* const pw = weight.data<T>();
  const C w0 = static_cast<C>(pw[0]), w1 = static_cast<C>(pw[1]), w2 = static_cast<C>(pw[2]);
  const C n = static_cast<C>(width);
  const std::int64_t per_part = rows_per_part(rows, 1);
  const std::int64_t part_count = (rows + per_part - 1) / per_part;
  std::vector<std::array<C, 4>> parts(static_cast<std::size_t>(part_count));
  std::array<C, 4>* const sums = parts.data();
  parallel_for(part_count, 6 * per_part * width, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      const std::int64_t last = std::min(rows, (part + 1) * per_part);
      for (std::int64_t row = part * per_part; row < last; ++row) {
        const T* const rx = px + row * width;
        const T* const rdy = pdy + row * width;
        const C r0 = prstd[3 * row], r1 = prstd[3 * row + 1], r2 = prstd[3 * row + 2];
        const auto value = [rx](std::int64_t i) { return static_cast<C>(rx[i]); };
        const auto times_x = [=](std::int64_t i) { return static_cast<C>(rdy[i]) * value(i); };
        const auto times_x2 = [=](std::int64_t i) { return times_x(i) * value(i); };
        const auto [s1, s2] = row_sums<C>(width, times_x, times_x2);
        const auto [s3, s0] = row_sums<C>(
            width, [=](std::int64_t i) { return times_x2(i) * value(i); },
            [rdy](std::int64_t i) { return static_cast<C>(rdy[i]); });
        sums[part][0] += r0 * s3;
        sums[part][1] += r1 * s2;
        sums[part][2] += r2 * s1;
        sums[part][3] += s0;
        if (pdx == nullptr) continue;
        T* const rdx = pdx + row * width;
        const C a0 = 3 * w0 * r0, a1 = 2 * w1 * r1, a2 = w2 * r2;
        const C b0 = r0 * r0 * s3 / n, b1 = r1 * r1 * s2 / n, b2 = r2 * r2 * s1 / n;
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) {
          const C v = static_cast<C>(rx[i]), g = static_cast<C>(rdy[i]);
          const C v2 = v * v;
          rdx[i] = static_cast<T>(a0 * v2 * (g - b0 * v2 * v) + a1 * v * (g - b1 * v2) +
                                  a2 * (g - b2 * v));
        }
      }
    }
  });
  std::array<C, 4> total{};
  for (const auto& part : parts)
    for (std::size_t k = 0; k < 4; ++k) total[k] += part[k];
  if (dweight.defined())
    for (std::size_t k = 0; k < 3; ++k) dweight.data<T>()[k] = static_cast<T>(total[k]);
  if (dbias.defined()) dbias.data<T>()[0] = static_cast<T>(total[3]);
}

void poly_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
               const Tensor& out, const Tensor& rstd) {
  visit_floating(x.dtype(), "poly_norm",
                 [&]<class T>(TypeTag<T>) { forward<T>(x, weight, bias, eps, out, rstd); });
}

void poly_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& rstd, const Tensor& dy,
                        const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  visit_floating(x.dtype(), "poly_norm_backward", [&]<class T>(TypeTag<T>) {
    backward<T>(x, weight, rstd, dy, dx, dweight, dbias);
  });
}

}  // namespace

void add_poly_norm_kernels(Backend& table) {
  table.poly_norm = poly_norm;
  table.poly_norm_backward = poly_norm_backward;
}

}  // namespace norma::cpu_kernels
