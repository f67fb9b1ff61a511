// CPU kernels of the linear layer: the product, with bias and activation applied to each block of
// rows while it is in the cache; and their backward.
#include <omp.h>

#include <cmath>
#include <numbers>

#include "norma/core/factory.h"
#include "norma/ops/cpu/gemm.h"
#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"
#include "norma/ops/cpu/vec_math.h"

namespace norma::cpu_kernels {

namespace {

/// Rows of a block: its result stays in the second-level cache between product and epilogue. Also
/// the first stage of column sums, so it must not depend on the number of threads.
constexpr std::int64_t block_rows = 128;

// -- activations: value(z), and slope(z) = d value / dz -------------------------------------------

struct None {
  template <class T>
  static T value(T z) {
    return z;
  }
  template <class T>
  static T slope(T) {
    return T{1};
  }
};

struct Relu {
  template <class T>
  static T value(T z) {
    return z < T{0} ? T{0} : z;  // NaN stays
  }
  template <class T>
  static T slope(T z) {
    return z > T{0} ? T{1} : T{0};
  }
};

/// z * Phi(z), Phi the normal distribution function.
struct Gelu {
  template <class T>
  static T value(T z) {
    return z * VecMath::normal(z).cdf;
  }
  template <class T>
  static T slope(T z) {
    const auto normal = VecMath::normal(z);
    return normal.cdf + z * normal.density;
  }
};

/// z / 2 * (1 + tanh(sqrt(2 / pi) * (z + 0.044715 z^3))).
struct GeluTanh {
  template <class T>
  static constexpr T factor = T{std::numbers::sqrt2 * std::numbers::inv_sqrtpi};
  template <class T>
  static T value(T z) {
    return T{0.5} * z * (T{1} + VecMath::tanh(factor<T> * (z + T{0.044715} * z * z * z)));
  }
  template <class T>
  static T slope(T z) {
    const T t = VecMath::tanh(factor<T> * (z + T{0.044715} * z * z * z));
    return T{0.5} * (T{1} + t) +
           T{0.5} * z * (T{1} - t * t) * factor<T> * (T{1} + T{3 * 0.044715} * z * z);
  }
};

struct Silu {
  template <class T>
  static T value(T z) {
    return z * VecMath::sigmoid(z);
  }
  template <class T>
  static T slope(T z) {
    const T s = VecMath::sigmoid(z);
    return s * (T{1} + z * (T{1} - s));
  }
};

template <class F>
void visit_activation(Activation activation, F&& f) {
  switch (activation) {
    case Activation::none:
      return f(None{});
    case Activation::relu:
      return f(Relu{});
    case Activation::gelu:
      return f(Gelu{});
    case Activation::gelu_tanh:
      return f(GeluTanh{});
    case Activation::silu:
      return f(Silu{});
  }
}

/// Runs `block(first, last)` over blocks of rows: one thread each where there are enough of them to
/// share evenly, with products of one block inside; otherwise one after the other after `product`
/// has run on the whole team.
template <class Product, class Block>
void for_row_blocks(std::int64_t rows, std::int64_t cost, const Product& product,
                    const Block& block) {
  const std::int64_t blocks = (rows + block_rows - 1) / block_rows;
  const auto range = [&](std::int64_t i) {
    return std::pair{i * block_rows, std::min(rows, (i + 1) * block_rows)};
  };
  const bool one_thread_each = blocks >= 4 * omp_get_max_threads();
  if (!one_thread_each) product(std::int64_t{0}, rows);
  parallel_for(blocks, block_rows * cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto [first, last] = range(i);
      if (one_thread_each) product(first, last);
      block(i, first, last);
    }
  });
}

// -- forward ------------------------------------------------------------------------------------

/// One row: z = product + bias; pre = z; out = activation(z). `product` may be pre or out.
template <class T, class A, bool with_bias, bool with_pre>
void epilogue_row(const T* product, const T* bias, T* pre, T* out, std::int64_t n) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) {
    T z = product[j];
    if constexpr (with_bias) z += bias[j];
    if constexpr (with_pre) pre[j] = z;
    out[j] = A::value(z);
  }
}

template <class T>
void linear_typed(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation,
                  const Tensor& pre, const Tensor& out) {
  const std::int64_t m = x.size(0), k = x.size(1), n = weight.size(0);
  const T* const px = x.data<T>();
  const T* const pw = weight.data<T>();
  const T* const pb = bias.defined() ? bias.data<T>() : nullptr;
  T* const pz = pre.defined() ? pre.data<T>() : nullptr;
  T* const po = out.data<T>();
  T* const product = pz != nullptr ? pz : po;
  const std::int64_t ld = std::max<std::int64_t>(k, 1);
  visit_activation(activation, [&]<class A>(A) {
    const auto multiply = [&](std::int64_t first, std::int64_t last) {
      gemm(last - first, n, k, T{1}, Matrix<T>{px + first * k, ld}, Matrix<T>{pw, ld, true}, T{0},
           product + first * n, n);
    };
    for_row_blocks(m, n, multiply, [&](std::int64_t, std::int64_t first, std::int64_t last) {
      if (std::is_same_v<A, None> && pb == nullptr && pz == nullptr) return;
      for (std::int64_t i = first * n; i < last * n; i += n) {
        if (pb != nullptr && pz != nullptr)
          epilogue_row<T, A, true, true>(product + i, pb, pz + i, po + i, n);
        else if (pb != nullptr)
          epilogue_row<T, A, true, false>(product + i, pb, nullptr, po + i, n);
        else if (pz != nullptr)
          epilogue_row<T, A, false, true>(product + i, nullptr, pz + i, po + i, n);
        else
          epilogue_row<T, A, false, false>(product + i, nullptr, nullptr, po + i, n);
      }
    });
  });
}

void linear_kernel(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation,
                   const Tensor& pre, const Tensor& out) {
  if (out.numel() == 0) return;
  if (x.dtype() == float64) return linear_typed<double>(x, weight, bias, activation, pre, out);
  const Tensor wide_pre = widened_output(pre), wide_out = widened_output(out);
  linear_typed<float>(widened(x), widened(weight), widened(bias), activation, wide_pre, wide_out);
  narrow_into(wide_pre, pre);
  narrow_into(wide_out, out);
}

// -- backward -----------------------------------------------------------------------------------

/// A block of rows: g = dy * slope(pre), and the sums of its columns into `sums`, each where
/// wanted.
template <class T, class A>
void backward_block(const T* dy, const T* pre, T* g, T* sums, std::int64_t rows, std::int64_t n) {
  if (sums != nullptr) std::fill(sums, sums + n, T{0});
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* const dy_row = dy + i * n;
    if constexpr (std::is_same_v<A, None>) {
      if (sums == nullptr) return;
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) sums[j] += dy_row[j];
    } else {
      const T* const pre_row = pre + i * n;
      T* const g_row = g + i * n;
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) g_row[j] = dy_row[j] * A::slope(pre_row[j]);
      if (sums == nullptr) continue;
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) sums[j] += g_row[j];
    }
  }
}

template <class T>
void linear_backward_typed(const Tensor& x, const Tensor& weight, const Tensor& pre,
                           Activation activation, const Tensor& dy, const Tensor& dx,
                           const Tensor& dweight, const Tensor& dbias) {
  const std::int64_t m = x.size(0), k = x.size(1), n = weight.size(0);
  const std::int64_t blocks = (m + block_rows - 1) / block_rows;
  const std::int64_t ld_k = std::max<std::int64_t>(k, 1), ld_n = std::max<std::int64_t>(n, 1);
  const TensorOptions options{.dtype = x.dtype()};
  const bool active = activation != Activation::none;
  const Tensor g = active ? empty({m, n}, options) : dy;
  const Tensor partial = dbias.defined() ? empty({blocks, n}, options) : Tensor();
  const T* const pdy = dy.data<T>();
  const T* const ppre = active ? pre.data<T>() : nullptr;
  T* const pg = g.data<T>();
  T* const psums = partial.defined() ? partial.data<T>() : nullptr;

  visit_activation(activation, [&]<class A>(A) {
    parallel_for(blocks, block_rows * n, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t first = i * block_rows, last = std::min(m, first + block_rows);
        backward_block<T, A>(pdy + first * n, active ? ppre + first * n : nullptr, pg + first * n,
                             psums != nullptr ? psums + i * n : nullptr, last - first, n);
      }
    });
  });
  if (dbias.defined()) {
    T* const out = dbias.data<T>();
    std::fill(out, out + n, T{0});
    for (std::int64_t i = 0; i < blocks; ++i)
      for (std::int64_t j = 0; j < n; ++j) out[j] += psums[i * n + j];
  }
  if (dx.defined())
    gemm(m, k, n, T{1}, Matrix<T>{pg, ld_n}, Matrix<T>{weight.data<T>(), ld_k}, T{0}, dx.data<T>(),
         ld_k);
  if (dweight.defined())
    gemm(n, k, m, T{1}, Matrix<T>{pg, ld_n, true}, Matrix<T>{x.data<T>(), ld_k}, T{0},
         dweight.data<T>(), ld_k);
}

void linear_backward_kernel(const Tensor& x, const Tensor& weight, const Tensor& pre,
                            Activation activation, const Tensor& dy, const Tensor& dx,
                            const Tensor& dweight, const Tensor& dbias) {
  if (x.dtype() == float64)
    return linear_backward_typed<double>(x, weight, pre, activation, dy, dx, dweight, dbias);
  const Tensor wide_dx = widened_output(dx), wide_dw = widened_output(dweight),
               wide_db = widened_output(dbias);
  linear_backward_typed<float>(widened(x), widened(weight), widened(pre), activation, widened(dy),
                               wide_dx, wide_dw, wide_db);
  narrow_into(wide_dx, dx);
  narrow_into(wide_dw, dweight);
  narrow_into(wide_db, dbias);
}

}  // namespace

void add_linear_kernels(Backend& table) {
  table.linear = linear_kernel;
  table.linear_backward = linear_backward_kernel;
}

}  // namespace norma::cpu_kernels
