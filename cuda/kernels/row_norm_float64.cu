#include "norma/cuda/kernels/row_norm_launch.cuh"

namespace norma::cuda_kernels {
NORMA_INSTANTIATE_ROW_NORM(double);
}  // namespace norma::cuda_kernels
