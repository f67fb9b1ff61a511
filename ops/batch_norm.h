// Norms of channels: the statistics of a channel run over all samples and positions.
//
// Statistics are two-pass and, as the running ones, computed in float32 (float64 for float64).
// Running statistics may have any floating-point dtype; they are moved in place in training and
// take the place of the batch's otherwise. weight and bias [channels] have the input's dtype;
// either may be undefined. Recording keeps the input and two statistics a channel.
#pragma once

#include "norma/core/tensor.h"

#include <vector>

namespace norma {

/// h * weight + bias with h = (x - mean) / sqrt(var + eps), where mean and biased variance are
/// those of the channel over the batch in training, else the running ones. Input [samples,
/// channels] or [samples, channels, *]. In training running = (1 - momentum) * running + momentum *
/// batch, for the variance with the unbiased one. With n positions a channel and r = 1 / sqrt(var +
/// eps): dx = r weight (dy - mean(dy) - h mean(dy h)), in evaluation r weight dy. Throws ValueError
/// in training with one value a channel, and in evaluation without running statistics. An empty
/// batch leaves these as they are. As torch.nn.functional.batch_norm; Ioffe, Szegedy: Batch
/// Normalization (arXiv 1502.03167).
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight = {}, const Tensor& bias = {}, bool training = false,
                  double momentum = 0.1, double eps = 1e-5);

/// The same over tokens: input [..., channels], of which those where `padding_mask` [...] (bool) is
/// true do not enter the statistics. All tokens are normalized, also padding, and its gradient
/// counts: dx_i = r weight (dy_i - m_i (sum(dy) + h_i sum(dy h)) / n), m_i = 0 for padding, n the
/// number of tokens without it. An undefined mask is naive batch normalization: padding counts.
/// With fewer than two tokens the running variance takes the biased one.
Tensor masked_batch_norm(const Tensor& input, const Tensor& padding_mask,
                         const Tensor& running_mean, const Tensor& running_var,
                         const Tensor& weight = {}, const Tensor& bias = {}, bool training = false,
                         double momentum = 0.1, double eps = 1e-5);

struct RegularizedBatchNormOptions {
  double mean_penalty = 0.1;       ///< lambda of the mean
  double variance_penalty = 0.01;  ///< lambda of the variance
  double momentum = 0.05;
  double eps = 1e-5;
};
struct RegularizedBatchNorm {
  Tensor output;
  Tensor penalty;  ///< to be added to the loss; 0 in evaluation
};

/// masked_batch_norm whose divisor is sqrt(max(var, eps)) and whose running variance is the biased
/// one, with a penalty mean_penalty |running_mean - mean|_2^2 + variance_penalty |running_var -
/// var|_1 on how far the batch is from the running statistics as they were before it, which are
/// constants to the gradient. Source: Wang et al., Understanding the Failure of Batch Normalization
/// for Transformers in NLP (arXiv 2210.05153), and its code.
RegularizedBatchNorm regularized_batch_norm(const Tensor& input, const Tensor& padding_mask,
                                            const Tensor& running_mean, const Tensor& running_var,
                                            const Tensor& weight = {}, const Tensor& bias = {},
                                            bool training = false,
                                            const RegularizedBatchNormOptions& options = {});

/// Mean and biased variance [channels] of `count` [1] positions.
struct Moments {
  Tensor mean, variance, count;
};

/// Moments of input [..., channels] without the tokens where padding_mask is true; off the tape.
Moments channel_moments(const Tensor& input, const Tensor& padding_mask = {});
/// The moments of all parts together, by Chan's update in the order of the parts: what synchronized
/// batch normalization does with the moments of each process. Chan, Golub, LeVeque 1983.
Moments merge_moments(const std::vector<Moments>& parts);

namespace composite {
// The same in elementary operations; running statistics are read only.
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight = {}, const Tensor& bias = {}, bool training = false,
                  double momentum = 0.1, double eps = 1e-5);
Tensor masked_batch_norm(const Tensor& input, const Tensor& padding_mask,
                         const Tensor& running_mean, const Tensor& running_var,
                         const Tensor& weight = {}, const Tensor& bias = {}, bool training = false,
                         double momentum = 0.1, double eps = 1e-5);
RegularizedBatchNorm regularized_batch_norm(const Tensor& input, const Tensor& padding_mask,
                                            const Tensor& running_mean, const Tensor& running_var,
                                            const Tensor& weight = {}, const Tensor& bias = {},
                                            bool training = false,
                                            const RegularizedBatchNormOptions& options = {});
}  // namespace composite

}  // namespace norma
