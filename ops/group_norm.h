// Norms of groups of channels: GroupNorm and InstanceNorm. The input is [samples, channels, *].
#pragma once

#include "norma/core/tensor.h"

namespace norma {

/// (x - mean) / sqrt(var + eps) * weight + bias, where mean and biased variance are those of one of
/// `num_groups` groups of channels of one sample, and weight and bias [channels] (each may be
/// undefined) belong to the channel. Gradients as in layer_norm within a group; dweight and dbias
/// are summed over samples and positions. Throws ShapeError where num_groups does not divide the
/// channels. As torch.nn.functional.group_norm; Wu, He: Group Normalization (arXiv 1803.08494).
Tensor group_norm(const Tensor& input, std::int64_t num_groups, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);

/// GroupNorm with one channel a group; the input has positions. With running statistics [channels]
/// (both or neither): use_input_stats moves them in place by
/// `momentum` towards the mean over the samples of the samples' means and unbiased variances, and
/// without it they take the place of the input's statistics. As torch.nn.functional.instance_norm;
/// Ulyanov et al., Instance Normalization (arXiv 1607.08022).
Tensor instance_norm(const Tensor& input, const Tensor& running_mean = {},
                     const Tensor& running_var = {}, const Tensor& weight = {},
                     const Tensor& bias = {}, bool use_input_stats = true, double momentum = 0.1,
                     double eps = 1e-5);

namespace composite {
// The same in elementary operations; running statistics are read only.
Tensor group_norm(const Tensor& input, std::int64_t num_groups, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);
Tensor instance_norm(const Tensor& input, const Tensor& running_mean = {},
                     const Tensor& running_var = {}, const Tensor& weight = {},
                     const Tensor& bias = {}, bool use_input_stats = true, double momentum = 0.1,
                     double eps = 1e-5);
}  // namespace composite

}  // namespace norma
