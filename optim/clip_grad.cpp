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
    grads.push_back(grad);
  }
  return grads;
}

/// Of contiguous tensors.
Tensor norm_of(const TensorList& tensors, const char* op) {
  if (tensors.empty()) return zeros({});
  const Device device = tensors[0].device();
  DType dtype = float32;
  for (const Tensor& tensor : tensors) {
    check<DeviceError>(tensor.device() == device, op,
                       "all must be on one device; got {} and {}; take each device's alone", device,
                       tensor.device());
    check<DTypeError>(tensor.is_floating_point(), op, "all must be floating-point; got {}",
                      tensor.dtype());
    if (tensor.dtype() == float64) dtype = float64;
  }
  const Tensor norm = empty({}, {.dtype = dtype, .device = device});
  backend(norm).global_norm(tensors, norm);
  return norm;
}

}  // namespace

Tensor get_total_norm(const TensorList& tensors) {
  const NoGradGuard no_grad;
  TensorList defined;
  for (const Tensor& tensor : tensors)
    if (tensor.defined()) defined.push_back(tensor.contiguous());
  return norm_of(defined, "get_total_norm");
}

Tensor clip_grad_norm_(const TensorList& parameters, double max_norm,
                       const ClipGradOptions& options) {
  check(max_norm >= 0, "clip_grad_norm_", "max_norm must be at least 0; got {}", max_norm);
  const NoGradGuard no_grad;
  const TensorList grads = contiguous_gradients(parameters);
  const Tensor norm = norm_of(grads, "clip_grad_norm_");
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
