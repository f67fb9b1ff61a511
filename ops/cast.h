// Conversion of dtype and device, on the tape.
#pragma once

#include "norma/core/tensor.h"

namespace norma {

/// `input` with elements of `dtype`; itself where it has that dtype already. To bool: x != 0; to an
/// integer: toward zero; to a narrower float: to nearest even. The gradient is converted back; a
/// conversion to a type that is not floating-point has none. As torch.Tensor.to.
Tensor to(const Tensor& input, DType dtype);

/// `input` on `device`; itself where it is there already. The gradient travels back. Throws
/// DeviceError where the device does not exist. As torch.Tensor.to.
Tensor to(const Tensor& input, const Device& device);

}  // namespace norma
