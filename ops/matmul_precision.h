// How precisely a GPU multiplies float32 matrices.
#pragma once

#include <cstdint>

namespace norma {

enum class Float32MatmulPrecision : std::uint8_t {
  highest,  ///< float32 throughout
  high,     ///< factors rounded to TensorFloat32 (10 bits after the point), sums in float32
};

/// For all matrix products of float32 on a GPU, in all threads; `highest` from the start. The CPU
/// does not look at it. As torch.set_float32_matmul_precision, without its "medium".
void set_float32_matmul_precision(Float32MatmulPrecision precision);
Float32MatmulPrecision float32_matmul_precision();

}  // namespace norma
