// Gradient clipping by the norm of all gradients together.
#pragma once

#include "norma/core/tensor.h"

namespace norma::optim {

/// ‖t‖₂ over all `tensors` (undefined ones, as gradients may be, are left out) as if they were one
/// vector: a scalar in float32, or float64 where a tensor is. One pass, no host synchronization;
/// the sum runs in double precision in a fixed order. Throws DeviceError where they are on several
/// devices. As torch.nn.utils.get_total_norm with norm_type 2.
Tensor get_total_norm(const TensorList& tensors);

struct ClipGradOptions {
  bool error_if_nonfinite =
      false;  ///< throw ValueError for a norm of NaN or Inf (waits for the device)
};

/// Scales all gradients in place by min(1, max_norm / (norm + 1e-6)), and returns the norm before.
/// As torch.nn.utils.clip_grad_norm_ with norm_type 2. A NaN in one gradient makes all NaN, as
/// there; anything shared with a gradient, such as a graph made under create_graph, sees the change
/// (its version is bumped).
Tensor clip_grad_norm_(const TensorList& parameters, double max_norm,
                       const ClipGradOptions& options = {});

}  // namespace norma::optim
