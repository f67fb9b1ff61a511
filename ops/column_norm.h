// The Function behind the norms of channels. For ops/*.cpp only.
#pragma once

#include "norma/ops/norm_checks.h"

namespace norma::detail {

/// The operations of the family, whose names their nodes on the tape bear.
enum class ColumnOp : std::uint8_t {
  batch_norm,
  masked_batch_norm,
  regularized_batch_norm,
  instance_norm
};

/// One call of a norm of channels.
struct ColumnNormCall {
  ColumnOp op = ColumnOp::batch_norm;
  Shape extent;  ///< [outer, channels, inner]
  double eps = 0.0;
  bool clamp_variance = false;  ///< sqrt(max(var, eps)) instead of sqrt(var + eps)
};

/// {out, mean, variance, count} of the batch, the first three differentiable. `mask` [outer, inner]
/// bool (true: not in the statistics) or undefined.
TensorList column_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                       const Tensor& mask, const ColumnNormCall& call);
/// The same with given statistics [channels] (accumulate type), which are constants: {out}.
Tensor column_norm_with(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const Tensor& mean, const Tensor& variance, const ColumnNormCall& call);

/// Both or neither, of shape [channels], floating-point.
void check_running(const char* name, const Tensor& mean, const Tensor& var, const Tensor& input,
                   std::int64_t channels);
/// running = (1 - momentum) * running + momentum * batch, in place, off the tape; as it was where
/// `count` [1], of what the batch's statistics are of, is 0.
void move_running(const Tensor& running, const Tensor& batch, double momentum, const Tensor& count);
/// [samples, channels, *] as [outer, channels, inner].
Shape channels_second(const Tensor& input);
/// [..., channels] as [outer, channels, 1].
Shape channels_last(const Tensor& input);

}  // namespace norma::detail
