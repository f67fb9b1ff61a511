// Binary elementwise kernels: the loops around formulas/binary.h, for tensor with tensor and tensor
// with scalar.
#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/strided.h"
#include "norma/ops/cpu/vec_math.h"
#include "norma/ops/formulas/binary.h"

#include <cmath>

namespace norma::cpu_kernels {

namespace {

/// What op gives: bool for comparisons and logic, else the compute type itself.
template <BinaryOp op, class C>
using result_t = std::conditional_t<is_logical(op), bool, C>;

/// `count` elements of out = a op b in the compute type C; `out` points to result_t<op, C>.
template <class C>
using RowLoop = void (*)(const C* a, std::int64_t sa, const C* b, std::int64_t sb, void* out,
                         std::int64_t count);

template <BinaryOp op, class C>
void row_loop(const C* a, std::int64_t sa, const C* b, std::int64_t sb, void* out,
              std::int64_t count) {
  auto* const po = static_cast<result_t<op, C>*>(out);
  // The layouts that matter get a loop that vectorises. What does not, takes the last one.
  if constexpr (std::is_floating_point_v<C> && op != BinaryOp::pow) {
    if (sa == 1 && sb == 1) {
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) po[i] = formulas::binary<op, VecMath>(a[i], b[i]);
      return;
    }
    if (sa == 1 && sb == 0) {
      const C scalar = *b;
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) po[i] = formulas::binary<op, VecMath>(a[i], scalar);
      return;
    }
    if (sa == 0 && sb == 1) {
      const C scalar = *a;
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) po[i] = formulas::binary<op, VecMath>(scalar, b[i]);
      return;
    }
  }
  for (std::int64_t i = 0; i < count; ++i)
    po[i] = formulas::binary<op, VecMath>(a[i * sa], b[i * sb]);
}

template <class C>
RowLoop<C> row_loop_of(BinaryOp op) {
  RowLoop<C> loop = nullptr;
  visit_op<BinaryOp::logical_or>(op, [&]<BinaryOp tag>(OpTag<tag>) {
    // Integers have no div: the front door makes float32 of them.
    if constexpr (std::is_floating_point_v<C> || tag != BinaryOp::div) loop = row_loop<tag, C>;
  });
  return loop;
}

/// Elements converted at a time where the storage type is not the compute type.
constexpr std::int64_t block = 256;

template <class T, class C>
void load(const T* source, std::int64_t stride, std::int64_t count, C* values) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<C>(source[i * stride]);
}

/// One row in the storage type T: directly where it is the compute type, else block by block
/// through a buffer. So the loops above exist for three types, not for seven.
template <class T>
void typed_row(RowLoop<accumulate_t<T>> loop, bool logical, const T* a, std::int64_t sa, const T* b,
               std::int64_t sb, void* out, std::int64_t count) {
  using C = accumulate_t<T>;
  if constexpr (std::is_same_v<T, C>) {
    loop(a, sa, b, sb, out, count);
  } else {
    C a_values[block], b_values[block], results[block];
    for (std::int64_t i = 0; i < count; i += block) {
      const std::int64_t n = std::min(block, count - i);
      load(a + i * sa, sa, n, a_values);
      load(b + i * sb, sb, n, b_values);
      if (logical) {
        loop(a_values, 1, b_values, 1, static_cast<bool*>(out) + i, n);
      } else {
        loop(a_values, 1, b_values, 1, results, n);
        for (std::int64_t k = 0; k < n; ++k)
          static_cast<T*>(out)[i + k] = static_cast<T>(results[k]);
      }
    }
  }
}

/// Element `index` of `out`, whatever its dtype.
char* element(const Tensor& out, std::int64_t index) {
  return static_cast<char*>(out.raw_data()) + index * static_cast<std::int64_t>(out.element_size());
}

void binary(BinaryOp op, const Tensor& a, const Tensor& b, const Tensor& out) {
  visit_all(a.dtype(), [&]<class T>(TypeTag<T>) {
    const auto loop = row_loop_of<accumulate_t<T>>(op);
    const T* const pa = a.data<T>();
    const T* const pb = b.data<T>();
    const StridedLoop<2> dims(out.shape(), {a.strides(), b.strides()});
    dims.run(
        [&](std::int64_t begin, const std::array<std::int64_t, 2>& offsets, std::int64_t count) {
          typed_row<T>(loop, is_logical(op), pa + offsets[0], dims.inner_stride(0), pb + offsets[1],
                       dims.inner_stride(1), element(out, begin), count);
        });
  });
}

/// x^exponent where that has a cheap exact form, as in PyTorch; returns whether it had.
template <class C>
bool special_pow(const Tensor& x, double exponent, const Tensor& out) {
  const auto loop = [&](auto power) {
    const C* const px = x.data<C>();
    C* const po = out.data<C>();
    parallel_for(x.numel(), 1, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) po[i] = power(px[i]);
    });
    return true;
  };
  if (exponent == 2.0) return loop([](C v) { return v * v; });
  if (exponent == 3.0) return loop([](C v) { return v * v * v; });
  if (exponent == 1.0) return loop([](C v) { return v; });
  if (exponent == 0.5) return loop([](C v) { return std::sqrt(v); });
  if (exponent == -0.5) return loop([](C v) { return C(1) / std::sqrt(v); });
  if (exponent == -1.0) return loop([](C v) { return C(1) / v; });
  if (exponent == -2.0) return loop([](C v) { return C(1) / (v * v); });
  return false;
}

void binary_scalar(BinaryOp op, const Tensor& x, double scalar, bool reversed, const Tensor& out) {
  if (op == BinaryOp::pow && !reversed) {
    if (x.dtype() == float32 && special_pow<float>(x, scalar, out)) return;
    if (x.dtype() == float64 && special_pow<double>(x, scalar, out)) return;
  }
  visit_all(x.dtype(), [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    const auto loop = row_loop_of<C>(op);
    const C value = static_cast<C>(scalar);  // not rounded to 16 bits
    const T* const px = x.data<T>();
    const bool logical = is_logical(op);
    parallel_for(x.numel(), op == BinaryOp::pow ? 16 : 1,
                 [&](std::int64_t begin, std::int64_t end) {
                   C values[block], results[block];
                   for (std::int64_t i = begin; i < end;) {
                     std::int64_t n = end - i;
                     const C* source = nullptr;
                     void* target = element(out, i);
                     if constexpr (std::is_same_v<T, C>) {
                       source = px + i;
                     } else {
                       n = std::min(n, block);
                       load(px + i, 1, n, values);
                       source = values;
                       if (!logical) target = results;
                     }
                     if (reversed)
                       loop(&value, 0, source, 1, target, n);
                     else
                       loop(source, 1, &value, 0, target, n);
                     if constexpr (!std::is_same_v<T, C>) {
                       if (!logical)
                         for (std::int64_t k = 0; k < n; ++k)
                           out.data<T>()[i + k] = static_cast<T>(results[k]);
                     }
                     i += n;
                   }
                 });
  });
}

}  // namespace

void add_binary_kernels(Backend& table) {
  table.binary = binary;
  table.binary_scalar = binary_scalar;
}

}  // namespace norma::cpu_kernels
