// From an operation that is known when a kernel is launched to one that is known when it is
// compiled: each operation is a kernel of its own.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace norma::cuda_kernels {

template <auto op>
using OpTag = std::integral_constant<decltype(op), op>;

/// Calls use(OpTag<op>{}) for an operation of an enumeration that ends with `last`.
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

}  // namespace norma::cuda_kernels
