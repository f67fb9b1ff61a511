// Matrix products.
#pragma once

#include "norma/core/tensor.h"

namespace norma {

/// Matrix product of the last two dimensions, broadcast over the ones before. As torch.matmul.
///
/// [..., M, K] x [..., K, N] -> [..., M, N]. A 1-D `input` counts as one row, a 1-D `other` as one
/// column, and that dimension is missing in the result: two vectors give their dot product, a
/// scalar. Transposed views (`x.t()`, `x.transpose(-2, -1)`) and sliced ones are used in place,
/// without a copy.
///
/// Both of one dtype, floating point (16-bit: sums in float32) or integer. Sums over K = 0 are 0.
/// Gradient: d_input = grad other^T, d_other = input^T grad, summed over broadcast dimensions.
///
/// Throws ShapeError for scalars, different K, or batch dimensions that do not broadcast;
/// DTypeError for different dtypes and bool; DeviceError for different devices.
Tensor matmul(const Tensor& input, const Tensor& other);

/// Product of two matrices, without broadcasting. As torch.mm.
Tensor mm(const Tensor& input, const Tensor& mat2);

/// Products of two batches of matrices [B, M, K] x [B, K, N], without broadcasting. As torch.bmm.
Tensor bmm(const Tensor& input, const Tensor& mat2);

/// Options of addmm().
struct AddmmOptions {
  double beta = 1.0;
  double alpha = 1.0;
};
/// beta * input + alpha * (mat1 mat2) in one pass; `input` broadcasts to [M, N]. As torch.addmm:
/// with beta = 0 `input` does not matter, even where it is NaN. Integers take whole factors only
/// (DTypeError).
Tensor addmm(const Tensor& input, const Tensor& mat1, const Tensor& mat2,
             const AddmmOptions& options = {});

}  // namespace norma
