// Memory layouts that kernels take uncopied.
#pragma once

#include "norma/core/tensor.h"

namespace norma::detail {

/// A tensor of x's shape with uninitialised elements, its dimensions in memory in the order of x's:
/// of a transposed view comes a transposed layout, so that undoing the transpose costs no copy.
/// Contiguous where x has no order (expanded dimensions). As torch.empty_like.
Tensor empty_in_order_of(const Tensor& x);

/// x [..., L, D] itself where its rows have stride 1 inside and do not overlap, else a contiguous
/// copy; off the tape.
Tensor with_adjacent_columns(const Tensor& x);

}  // namespace norma::detail
