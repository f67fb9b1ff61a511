#include "norma/ops/backend.h"
#include "norma/ops/cpu/kernels.h"

namespace norma {

const Backend& cpu_backend() {
  static const Backend table = [] {
    using namespace cpu_kernels;
    Backend filled;
    add_memory_kernels(filled);
    add_random_kernels(filled);
    add_elementwise_kernels(filled);
    add_unary_kernels(filled);
    add_binary_kernels(filled);
    add_activation_kernels(filled);
    add_dropout_kernels(filled);
    add_reduction_kernels(filled);
    add_matmul_kernels(filled);
    add_linear_kernels(filled);
    add_attention_kernels(filled);
    add_softmax_kernels(filled);
    add_loss_kernels(filled);
    add_norm_kernels(filled);
    add_index_kernels(filled);
    add_rope_kernels(filled);
    add_optimizer_kernels(filled);
    return filled;
  }();
  return table;
}

}  // namespace norma
