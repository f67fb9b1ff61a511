// PowerNorm: batch normalization by the mean square, with a running statistic in the forward and an
// approximate backward.
#pragma once

#include "norma/core/tensor.h"

namespace norma {

struct PowerNormOptions {
  double momentum_forward = 0.9;   ///< share of the running mean square that stays
  double momentum_backward = 0.9;  ///< the same in the backward
  double eps = 1e-5;
  std::int64_t warmup_steps = 10000;  ///< so long the batch's mean square normalizes
};

/// z * weight + bias for input [..., channels], with z = x / sqrt(phi + eps). In training phi is
/// the batch's mean square while `step` (from 1) is at most warmup_steps, then the running one, as
/// in evaluation; tokens where padding_mask is true do not enter the batch's. Afterwards
/// running_phi moves towards the batch's: during the warm-up first to its cumulative mean, then,
/// always, by 1 - momentum_forward (twice in a warm-up step, as the source does).
///
/// The backward is approximate by design: with g = dy weight, g' = g - (1 - momentum_backward) nu z
/// and then nu += mean of g' z over all tokens; dx = g' / sqrt(phi_batch + eps) with the batch's
/// mean square, whichever the forward used. dweight = sum of dy z, dbias = sum of dy. So it is not
/// the derivative of the forward, changes nu at every backward, and has no second derivative
/// (NotImplementedError under create_graph). In evaluation phi is a constant: dx = g / sqrt(phi +
/// eps).
///
/// running_phi and nu [channels], floating-point, start as ones and zeros and move in place.
/// Source: Shen et al., PowerNorm: Rethinking Batch Normalization in Transformers (arXiv
/// 2003.07845), and its code; its group scaling before this is rms_norm over groups of channels
/// (nn::PowerNorm).
Tensor power_norm(const Tensor& input, const Tensor& padding_mask, const Tensor& running_phi,
                  const Tensor& nu, const Tensor& weight, const Tensor& bias, bool training,
                  std::int64_t step, const PowerNormOptions& options = {});

}  // namespace norma
