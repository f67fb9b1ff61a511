// What formulas of element-wise operations have in common. A formula stands once, for kernels of
// every device: it takes elementary functions from its `Math`, which is the device's own (VecMath,
// DeviceMath). Without the rest of ops, for nvcc cannot compile fmt.
#pragma once

#include "norma/ops/op_codes.h"

#include <cstddef>
#include <type_traits>
#include <utility>

#ifdef __CUDACC__
#define NORMA_FORMULA __device__ __forceinline__
#else
#define NORMA_FORMULA inline
#endif

namespace norma {

template <auto op>
using OpTag = std::integral_constant<decltype(op), op>;

/// From an operation that is known when a kernel runs to one that is known when it is compiled:
/// calls use(OpTag<op>{}) for an operation of an enumeration that ends with `last`.
template <auto last, class Use>
void visit_op(decltype(last) op, const Use& use) {
  constexpr auto count = static_cast<std::size_t>(last) + 1;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    const auto call = [&]<std::size_t k>(std::integral_constant<std::size_t, k>) {
      constexpr auto candidate = static_cast<decltype(last)>(k);
      if (op == candidate) use(OpTag<candidate>{});
    };
    (call(std::integral_constant<std::size_t, i>{}), ...);
  }
  (std::make_index_sequence<count>{});
}

}  // namespace norma
