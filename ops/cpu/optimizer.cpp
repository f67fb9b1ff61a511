#include "norma/ops/cpu/kernels.h"

namespace norma::cpu_kernels {

void add_optimizer_kernels(Backend& /*table*/) {}

}  // namespace norma::cpu_kernels
