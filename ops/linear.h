// Linear layer: matrix product with fused bias and activation.
#pragma once

#include "norma/ops/backend.h"

namespace norma {

/// y = activation(input weight^T + bias). As torch.nn.functional.linear, with the activation fused
/// in.
///
/// input [..., in_features], weight [out_features, in_features] or [in_features] (then the result
/// has no last dimension), bias [out_features] or undefined; one floating-point dtype. The bias is
/// added, and the activation taken, in the pass that follows the product; 16-bit types are rounded
/// once, at the end.
///
/// Gradient, with z the value before the activation and g = grad * activation'(z): d_input = g
/// weight, d_weight = g^T input, d_bias = column sums of g in a fixed order. Keeps z only when
/// there is an activation.
///
/// Throws ShapeError, DTypeError or DeviceError where the operands do not fit.
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
              Activation activation = Activation::none);

/// The activation alone, for where it cannot be fused.
Tensor activate(const Tensor& x, Activation activation);

namespace composite {
/// The definition of norma::linear in elementary operations.
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
              Activation activation = Activation::none);
}  // namespace composite

}  // namespace norma
