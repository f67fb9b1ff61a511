#include "norma/optim/clip_grad.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/storage.h"
#include "norma/ops/backend.h"

#include <cmath>

namespace norma::optim {

namespace {

/// The gradients, contiguous: one that is not is replaced, so that scaling reaches it.
TensorList contiguous_gradients(const TensorList& parameters) {
  TensorList grads;
  for (const Tensor& parameter : parameters) {
    check(parameter.defined(), "clip_grad_norm_",
          "parameters must be defined; got an undefined one");
    Tensor grad = parameter.grad();
    if (!grad.defined()) continue;
    if (!grad.is_contiguous()) {
      grad = grad.contiguous();
      parameter.set_grad(grad);
    }
    check<DeviceError>(
        grads.empty() || grads[0].device() == grad.device(), "clip_grad_norm_",
        "all gradients must be on one device; got {} and {}; clip each device's alone",
        grads.empty() ? grad.device() : grads[0].device(), grad.device());
    grads.push_back(grad);
  }
  return grads;
}

Tensor norm_of(const TensorList& grads) {
  if (grads.empty()) return zeros({});
  DType dtype = float32;
  for (const Tensor& grad : grads)
    if (grad.dtype() == float64) dtype = float64;
  const Tensor norm = empty({}, {.dtype = dtype, .device = grads[0].device()});
  backend(norm).global_norm(grads, norm);
  return norm;
}

}  // namespace

Tensor get_total_norm(const TensorList& parameters) {
  const NoGradGuard no_grad;
  return norm_of(contiguous_gradients(parameters));
}

Tensor clip_grad_norm_(const TensorList& parameters, double max_norm,
                       const ClipGradOptions& options) {
  check(max_norm >= 0, "clip_grad_norm_", "max_norm must be at least 0; got {}", max_norm);
  const NoGradGuard no_grad;
  const TensorList grads = contiguous_gradients(parameters);
  const Tensor norm = norm_of(grads);
  if (options.error_if_nonfinite) {
    const double value = norm.item();
    check(
        std::isfinite(value), "clip_grad_norm_",
        "the norm of all gradients must be finite; got {}; find its source with DetectAnomalyGuard",
        value);
  }
  if (grads.empty()) return norm;
  backend(norm).clip_scale(grads, norm, max_norm);
  for (const Tensor& grad : grads) grad.storage()->bump_version();
  return norm;
}

}  // namespace norma::optim
