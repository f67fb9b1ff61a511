// Dropout. The mask is never stored: it is drawn again from the position in the random stream
// (core/random.h).
#pragma once

#include "norma/core/random.h"
#include "norma/core/tensor.h"

namespace norma {

/// In training each element is 0 with probability p, else x / (1 - p); otherwise, and for p = 0, x
/// itself. Element i is kept where uniform(word i) >= p, so the mask depends on seed and position
/// only: not on threads or device. The gradient goes through the same mask. p in [0, 1]
/// (ValueError); p = 1 gives zeros. Takes numel 32-bit words from the default generator. As
/// torch.nn.functional.dropout; Srivastava et al., JMLR 15 (2014).
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true);

namespace detail {
/// Dropout with the random words that `state` stands for.
Tensor dropout(const Tensor& x, double p, const PhiloxState& state);
/// The mask of that: bool, true where kept.
Tensor dropout_mask(const Shape& shape, double p, const PhiloxState& state,
                    const Device& device = cpu);
}  // namespace detail

namespace composite {
/// x times the materialised mask, over 1 - p.
Tensor dropout(const Tensor& x, double p, const PhiloxState& state);
}  // namespace composite

}  // namespace norma
