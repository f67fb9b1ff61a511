// Binary elementwise kernels: arithmetic, comparisons, logic; tensor with tensor and tensor with
// scalar.
#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/strided.h"

#include <cmath>
#include <type_traits>

namespace norma::cpu_kernels {

namespace {

/// Integer power; a negative exponent gives what rounding toward zero of the real power gives, as
/// in PyTorch.
std::int64_t integer_pow(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  std::uint64_t result = 1;
  for (auto square = static_cast<std::uint64_t>(base); exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= square;
    square *= square;
  }
  return static_cast<std::int64_t>(result);
}

/// a op b in the compute type C. Integers wrap (they are computed without a sign, where that is
/// defined).
template <BinaryOp op, class C>
inline auto apply(C a, C b) {
  constexpr bool integral = std::is_integral_v<C>;
  using Wrapping = std::conditional_t<integral, std::uint64_t, C>;
  [[maybe_unused]] const auto wa = static_cast<Wrapping>(a);
  [[maybe_unused]] const auto wb = static_cast<Wrapping>(b);
  if constexpr (op == BinaryOp::add)
    return static_cast<C>(wa + wb);
  else if constexpr (op == BinaryOp::sub)
    return static_cast<C>(wa - wb);
  else if constexpr (op == BinaryOp::mul)
    return static_cast<C>(wa * wb);
  else if constexpr (op == BinaryOp::div)
    return static_cast<C>(a / b);  // floating point only
  else if constexpr (op == BinaryOp::pow) {
    if constexpr (integral)
      return integer_pow(a, b);
    else
      return static_cast<C>(std::pow(a, b));
  } else if constexpr (op == BinaryOp::maximum) {
    return (a > b || a != a) ? a : b;  // NaN from either side
  } else if constexpr (op == BinaryOp::minimum) {
    return (a < b || a != a) ? a : b;
  } else if constexpr (op == BinaryOp::eq)
    return a == b;
  else if constexpr (op == BinaryOp::ne)
    return a != b;
  else if constexpr (op == BinaryOp::lt)
    return a < b;
  else if constexpr (op == BinaryOp::le)
    return a <= b;
  else if constexpr (op == BinaryOp::gt)
    return a > b;
  else if constexpr (op == BinaryOp::ge)
    return a >= b;
  else if constexpr (op == BinaryOp::logical_and)
    return (a != C(0)) & (b != C(0));
  else
    return (a != C(0)) | (b != C(0));
}

/// What op gives: bool for comparisons and logic, else the compute type itself.
template <BinaryOp op, class C>
using result_t = std::conditional_t<(op >= BinaryOp::eq), bool, C>;

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
      for (std::int64_t i = 0; i < count; ++i) po[i] = apply<op>(a[i], b[i]);
      return;
    }
    if (sa == 1 && sb == 0) {
      const C scalar = *b;
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) po[i] = apply<op>(a[i], scalar);
      return;
    }
    if (sa == 0 && sb == 1) {
      const C scalar = *a;
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) po[i] = apply<op>(scalar, b[i]);
      return;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) po[i] = apply<op>(a[i * sa], b[i * sb]);
}

template <class C>
RowLoop<C> row_loop_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
      return row_loop<BinaryOp::add, C>;
    case BinaryOp::sub:
      return row_loop<BinaryOp::sub, C>;
    case BinaryOp::mul:
      return row_loop<BinaryOp::mul, C>;
    case BinaryOp::div:
      return row_loop<BinaryOp::div, C>;
    case BinaryOp::pow:
      return row_loop<BinaryOp::pow, C>;
    case BinaryOp::maximum:
      return row_loop<BinaryOp::maximum, C>;
    case BinaryOp::minimum:
      return row_loop<BinaryOp::minimum, C>;
    case BinaryOp::eq:
      return row_loop<BinaryOp::eq, C>;
    case BinaryOp::ne:
      return row_loop<BinaryOp::ne, C>;
    case BinaryOp::lt:
      return row_loop<BinaryOp::lt, C>;
    case BinaryOp::le:
      return row_loop<BinaryOp::le, C>;
    case BinaryOp::gt:
      return row_loop<BinaryOp::gt, C>;
    case BinaryOp::ge:
      return row_loop<BinaryOp::ge, C>;
    case BinaryOp::logical_and:
      return row_loop<BinaryOp::logical_and, C>;
    case BinaryOp::logical_or:
      break;
  }
  return row_loop<BinaryOp::logical_or, C>;
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
          typed_row<T>(loop, op >= BinaryOp::eq, pa + offsets[0], dims.inner_stride(0),
                       pb + offsets[1], dims.inner_stride(1), element(out, begin), count);
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
    const bool logical = op >= BinaryOp::eq;
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
