// unit_rows: an operation of one's own, with CUDA kernels of one's own.
#pragma once

#include <norma/norma.h>

namespace custom_op {

/// The definition: x / sqrt(sum of x^2 + eps) over the last dimension, in elementary operations.
inline norma::Tensor composite(const norma::Tensor& x, double eps) {
  return x / (x.square().sum({-1}, true) + eps).sqrt();
}

/// The same with a hand-written backward; float32, [rows, width]. The kernels run on the GPU for
/// tensors on cuda(0), and in the emulator where this is compiled without CUDA.
norma::Tensor unit_rows(const norma::Tensor& x, double eps = 1e-6);

}  // namespace custom_op
