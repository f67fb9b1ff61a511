#include "norma/cuda/kernels/elementwise_binary.h"

#include "norma/cuda/kernels/element.cuh"
#include "norma/cuda/kernels/math.cuh"
#include "norma/cuda/kernels/strided.cuh"
#include "norma/ops/formulas/binary.h"

namespace norma::cuda_kernels {

namespace {

/// x^exponent, where all threads have one exponent: some have a cheap exact form, as in PyTorch.
template <class C>
__device__ __forceinline__ C power_of(C x, C exponent) {
  if constexpr (std::is_integral_v<C>) {
    return formulas::integer_pow(x, exponent);
  } else {
    if (exponent == C(2)) return x * x;
    if (exponent == C(3)) return x * x * x;
    if (exponent == C(1)) return x;
    if (exponent == C(0.5)) return DeviceMath::sqrt(x);
    if (exponent == C(-0.5)) return C(1) / DeviceMath::sqrt(x);
    if (exponent == C(-1)) return C(1) / x;
    if (exponent == C(-2)) return C(1) / (x * x);
    return DeviceMath::pow(x, exponent);
  }
}

template <BinaryOp op, class T>
using result_t = std::conditional_t<is_logical(op), bool, T>;
/// Integers have no div: the front door makes float32 of them.
template <BinaryOp op, class T>
inline constexpr bool exists = op != BinaryOp::div || is_floating<T>;

template <BinaryOp op, class T>
__global__ void binary_kernel(StridedShape<3> shape, const T* a, const T* b, result_t<op, T>* out) {
  using C = compute_t<T>;
  for_each_offset(shape, [&](const auto& at) {
    out[at[0]] = element<result_t<op, T>>(
        formulas::binary<op, DeviceMath>(element<C>(a[at[1]]), element<C>(b[at[2]])));
  });
}

template <BinaryOp op, bool reversed, class T>
__global__ void binary_scalar_kernel(const T* x, compute_t<T> scalar, std::int64_t count,
                                     result_t<op, T>* out) {
  for_each_index(count, [=](std::int64_t i) {
    const auto value = element<compute_t<T>>(x[i]);
    if constexpr (reversed)
      out[i] = element<result_t<op, T>>(formulas::binary<op, DeviceMath>(scalar, value));
    else if constexpr (op == BinaryOp::pow)
      out[i] = element<T>(power_of(value, scalar));
    else
      out[i] = element<result_t<op, T>>(formulas::binary<op, DeviceMath>(value, scalar));
  });
}

/// Whether another operation, or the same, gives the same with exchanged operands.
constexpr bool is_exchangeable(BinaryOp op) {
  return op != BinaryOp::sub && op != BinaryOp::div && op != BinaryOp::pow;
}

/// That operation.
constexpr BinaryOp mirrored(BinaryOp op) {
  switch (op) {
    case BinaryOp::lt:
      return BinaryOp::gt;
    case BinaryOp::le:
      return BinaryOp::ge;
    case BinaryOp::gt:
      return BinaryOp::lt;
    case BinaryOp::ge:
      return BinaryOp::le;
    default:
      return op;
  }
}

}  // namespace

template <class T>
void binary(BinaryOp op, const StridedShape<3>& shape, const T* a, const T* b, void* out,
            void* stream) {
  if (shape.count == 0) return;
  visit_op<BinaryOp::logical_or>(op, [&]<BinaryOp tag>(OpTag<tag>) {
    if constexpr (exists<tag, T>)
      device::launch(loop_config("binary", shape.count, stream), binary_kernel<tag, T>, shape, a, b,
                     static_cast<result_t<tag, T>*>(out));
  });
}

template <class T>
void binary_scalar(BinaryOp op, const T* x, double scalar, bool reversed, std::int64_t count,
                   void* out, void* stream) {
  if (count == 0) return;
  const auto value = static_cast<compute_t<T>>(scalar);
  const device::LaunchConfig config = loop_config("binary_scalar", count, stream);
  const bool exchanged = reversed && is_exchangeable(op);
  visit_op<BinaryOp::logical_or>(exchanged ? mirrored(op) : op, [&]<BinaryOp tag>(OpTag<tag>) {
    if constexpr (exists<tag, T>) {
      auto* const to = static_cast<result_t<tag, T>*>(out);
      if constexpr (!is_exchangeable(tag))
        if (reversed)
          return device::launch(config, binary_scalar_kernel<tag, true, T>, x, value, count, to);
      device::launch(config, binary_scalar_kernel<tag, false, T>, x, value, count, to);
    }
  });
}

#define NORMA_BINARY(T)                                                                        \
  template void binary<T>(BinaryOp, const StridedShape<3>&, const T*, const T*, void*, void*); \
  template void binary_scalar<T>(BinaryOp, const T*, double, bool, std::int64_t, void*, void*);
NORMA_FOR_ALL_TYPES(NORMA_BINARY)

}  // namespace norma::cuda_kernels
