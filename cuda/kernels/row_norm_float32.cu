#include "norma/cuda/kernels/row_norm_launch.cuh"

namespace norma::cuda_kernels {
NORMA_INSTANTIATE_ROW_NORM(float);
}  // namespace norma::cuda_kernels
