// Element-wise norms: DyT, Derf, LayerScale, head scale; and the soft cap.
#include "norma/ops/cpu/norm.h"
#include "norma/ops/cpu/norm_row.h"
#include "norma/ops/cpu/parallel.h"
#include "norma/ops/cpu/vec_math.h"

#include <numbers>
#include <vector>

namespace norma::cpu_kernels {

namespace {

struct Identity {
  template <class C>
  static C value(C z) {
    return z;
  }
  template <class C>
  static C derivative(C, C) {
    return C(1);
  }
};
struct Tanh {
  template <class C>
  static C value(C z) {
    return VecMath::tanh(z);
  }
  template <class C>
  static C derivative(C, C t) {
    return C(1) - t * t;
  }
};
struct Erf {
  template <class C>
  static C value(C z) {
    return VecMath::erf(z);
  }
  template <class C>
  static C derivative(C z, C) {
    return static_cast<C>(2.0 * std::numbers::inv_sqrtpi) * VecMath::exp(-z * z);
  }
};

template <class F>
void visit_curve(Squash curve, const F& f) {
  switch (curve) {
    case Squash::identity:
      return f(Identity{});
    case Squash::tanh:
      return f(Tanh{});
    case Squash::erf:
      return f(Erf{});
  }
}

template <class T>
accumulate_t<T> scalar_or(const Tensor& tensor, double absent) {
  return static_cast<accumulate_t<T>>(tensor.defined() ? static_cast<double>(tensor.data<T>()[0])
                                                       : absent);
}

/// A column's value for each element of a row.
template <class T>
std::vector<accumulate_t<T>> by_element(const Tensor& columns, std::int64_t width, double absent) {
  using C = accumulate_t<T>;
  std::vector<C> values(static_cast<std::size_t>(width), static_cast<C>(absent));
  if (!columns.defined() || width == 0) return values;
  const std::int64_t segment = width / columns.numel();
  const T* const from = columns.data<T>();
  for (std::int64_t i = 0; i < width; ++i)
    values[static_cast<std::size_t>(i)] = static_cast<C>(from[i / segment]);
  return values;
}

template <class T, class Curve>
void forward(const Tensor& x, const Tensor& alpha, const Tensor& shift, const Tensor& weight,
             const Tensor& bias, const Tensor& out) {
  using C = accumulate_t<T>;
  const std::int64_t width = x.size(1);
  const T* const px = x.data<T>();
  T* const po = out.data<T>();
  const C a = scalar_or<T>(alpha, 1.0), s = scalar_or<T>(shift, 0.0);
  const auto gains = by_element<T>(weight, width, 1.0), offsets = by_element<T>(bias, width, 0.0);
  const C* const pg = gains.data();
  const C* const pb = offsets.data();
  parallel_for(x.size(0), 4 * width, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* const rx = px + row * width;
      T* const ro = po + row * width;
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i)
        ro[i] = static_cast<T>(Curve::value(a * static_cast<C>(rx[i]) + s) * pg[i] + pb[i]);
    }
  });
}

/// With z = alpha x + shift and q = dy weight f'(z): dx = alpha q, dalpha = sum of q x, dshift =
/// sum of q, dweight = sum over rows of dy f(z), dbias = sum over rows of dy.
template <class T, class Curve>
void backward(const Tensor& x, const Tensor& alpha, const Tensor& shift, const Tensor& weight,
              const Tensor& dy, const Tensor& dx, const Tensor& dalpha, const Tensor& dshift,
              const Tensor& dweight, const Tensor& dbias) {
  using C = accumulate_t<T>;
  const std::int64_t rows = x.size(0);
  const std::int64_t width = x.size(1);
  const T* const px = x.data<T>();
  const T* const pdy = dy.data<T>();
  T* const pdx = data_or_null<T>(dx);
  const C a = scalar_or<T>(alpha, 1.0), s = scalar_or<T>(shift, 0.0);
  const auto gains = by_element<T>(weight, width, 1.0);
  const C* const pg = gains.data();
  const std::int64_t per_part = rows_per_part(rows);
  const std::int64_t part_count = (rows + per_part - 1) / per_part;
  const auto parts_of = [=](bool wanted, std::int64_t columns) {
    return std::vector<C>(wanted ? static_cast<std::size_t>(part_count * columns) : 0);
  };
  const bool scalars = dalpha.defined() || dshift.defined();
  std::vector<C> alpha_parts = parts_of(scalars, 1), shift_parts = parts_of(scalars, 1);
  std::vector<C> weight_parts = parts_of(dweight.defined(), width);
  std::vector<C> bias_parts = parts_of(dbias.defined(), width);
  C* const alpha_sums = scalars ? alpha_parts.data() : nullptr;
  C* const shift_sums = scalars ? shift_parts.data() : nullptr;
  C* const weight_sums = dweight.defined() ? weight_parts.data() : nullptr;
  C* const bias_sums = dbias.defined() ? bias_parts.data() : nullptr;
  parallel_for(part_count, 8 * per_part * width, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      const std::int64_t last = std::min(rows, (part + 1) * per_part);
      for (std::int64_t row = part * per_part; row < last; ++row) {
        const T* const rx = px + row * width;
        const T* const rdy = pdy + row * width;
        const auto inner = [=](std::int64_t i) {
          const C z = a * static_cast<C>(rx[i]) + s;
          return static_cast<C>(rdy[i]) * pg[i] * Curve::derivative(z, Curve::value(z));
        };
        if (pdx != nullptr) {
          T* const rdx = pdx + row * width;
#pragma omp simd
          for (std::int64_t i = 0; i < width; ++i) rdx[i] = static_cast<T>(a * inner(i));
        }
        if (alpha_sums != nullptr) {
          const auto [by_alpha, by_shift] = row_sums<C>(
              width, [=](std::int64_t i) { return inner(i) * static_cast<C>(rx[i]); }, inner);
          alpha_sums[part] += by_alpha;
          shift_sums[part] += by_shift;
        }
        if (weight_sums != nullptr) {
          C* const sums = weight_sums + part * width;
#pragma omp simd
          for (std::int64_t i = 0; i < width; ++i)
            sums[i] += static_cast<C>(rdy[i]) * Curve::value(a * static_cast<C>(rx[i]) + s);
        }
        if (bias_sums != nullptr) {
          C* const sums = bias_sums + part * width;
#pragma omp simd
          for (std::int64_t i = 0; i < width; ++i) sums[i] += static_cast<C>(rdy[i]);
        }
      }
    }
  });
  // Over the parts in their order, and over the elements of a column.
  const auto finalize = [&](const std::vector<C>& parts, std::int64_t from_width,
                            const Tensor& out) {
    if (!out.defined()) return;
    const std::int64_t columns = out.numel();
    const std::int64_t segment = columns == 0 ? 0 : from_width / columns;
    for (std::int64_t column = 0; column < columns; ++column) {
      C sum = 0;
      for (std::int64_t part = 0; part < part_count; ++part)
        for (std::int64_t i = column * segment; i < (column + 1) * segment; ++i)
          sum += parts[static_cast<std::size_t>(part * from_width + i)];
      out.data<T>()[column] = static_cast<T>(sum);
    }
  };
  finalize(alpha_parts, 1, dalpha);
  finalize(shift_parts, 1, dshift);
  finalize(weight_parts, width, dweight);
  finalize(bias_parts, width, dbias);
}

void squash(Squash curve, const Tensor& x, const Tensor& alpha, const Tensor& shift,
            const Tensor& weight, const Tensor& bias, const Tensor& out) {
  visit_floating(x.dtype(), "squash", [&]<class T>(TypeTag<T>) {
    visit_curve(curve,
                [&]<class Curve>(Curve) { forward<T, Curve>(x, alpha, shift, weight, bias, out); });
  });
}

void squash_backward(Squash curve, const Tensor& x, const Tensor& alpha, const Tensor& shift,
                     const Tensor& weight, const Tensor& dy, const Tensor& dx, const Tensor& dalpha,
                     const Tensor& dshift, const Tensor& dweight, const Tensor& dbias) {
  visit_floating(x.dtype(), "squash_backward", [&]<class T>(TypeTag<T>) {
    visit_curve(curve, [&]<class Curve>(Curve) {
      backward<T, Curve>(x, alpha, shift, weight, dy, dx, dalpha, dshift, dweight, dbias);
    });
  });
}

void softcap(const Tensor& x, double cap, const Tensor& out) {
  visit_floating(x.dtype(), "softcap", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const T* const px = x.data<T>();
    T* const po = out.data<T>();
    const C c = static_cast<C>(cap);
    parallel_for(x.numel(), 4, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i)
        po[i] = static_cast<T>(c * VecMath::tanh(static_cast<C>(px[i]) / c));
    });
  });
}

void softcap_backward(const Tensor& y, double cap, const Tensor& dy, const Tensor& dx) {
  visit_floating(y.dtype(), "softcap_backward", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const T* const py = y.data<T>();
    const T* const pdy = dy.data<T>();
    T* const pdx = dx.data<T>();
    const C c = static_cast<C>(cap);
    parallel_for(y.numel(), 1, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const C t = static_cast<C>(py[i]) / c;
        pdx[i] = static_cast<T>(static_cast<C>(pdy[i]) * (C(1) - t * t));
      }
    });
  });
}

}  // namespace

void add_squash_kernels(Backend& table) {
  table.squash = squash;
  table.squash_backward = squash_backward;
  table.softcap = softcap;
  table.softcap_backward = softcap_backward;
}

}  // namespace norma::cpu_kernels
