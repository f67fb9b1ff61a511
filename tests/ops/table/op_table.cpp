#include "support/op_table.h"

namespace norma::test {

const OpTable& op_table() {
  static const OpTable table = [] {
    OpTable all;
    add_elementwise_ops(all);
    add_activation_ops(all);
    add_reduction_ops(all);
    add_view_ops(all);
    add_index_ops(all);
    add_matmul_ops(all);
    add_attention_ops(all);
    add_softmax_ops(all);
    add_loss_ops(all);
    add_norm_ops(all);
    add_random_ops(all);
    return all;
  }();
  return table;
}

}  // namespace norma::test
