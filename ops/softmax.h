// Softmax and its logarithm. The row maximum is subtracted, sums are float32 inside for 16-bit
// types.
#pragma once

#include "norma/core/tensor.h"

namespace norma {

/// exp(x_i) / sum_j exp(x_j) along `dim`, of a floating-point tensor (DTypeError). As
/// torch.softmax: a slice of -inf only gives NaN. (Attention has its own rule for rows that see no
/// key: zeros.) IndexError for a `dim` out of range. Gradient: y (dy - sum(dy y)).
Tensor softmax(const Tensor& x, std::int64_t dim);

/// x_i - log sum_j exp(x_j) along `dim`, without overflow. As torch.log_softmax. Gradient: dy -
/// exp(y) sum(dy).
Tensor log_softmax(const Tensor& x, std::int64_t dim);

namespace composite {
// The same in elementary operations; the subtracted maximum is a constant, because it cancels.
Tensor softmax(const Tensor& x, std::int64_t dim);
Tensor log_softmax(const Tensor& x, std::int64_t dim);
}  // namespace composite

}  // namespace norma
