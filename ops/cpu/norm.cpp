#include "norma/ops/cpu/norm.h"
#include "norma/ops/cpu/kernels.h"

namespace norma::cpu_kernels {

void add_norm_kernels(Backend& table) {
  add_row_norm_kernels(table);
  add_dual_norm_kernels(table);
  add_poly_norm_kernels(table);
  add_squash_kernels(table);
  add_column_norm_kernels(table);
}

}  // namespace norma::cpu_kernels
