// What the samples of the norms share.
#pragma once

#include "support/op_table.h"

namespace norma::test {

/// A sample of an operation with one output.
template <class Run, class Composite>
OpSample norm_sample(const std::string& label, const TensorList& inputs, const Run& run,
                     const Composite& composite, bool large = false) {
  return {label, inputs, [run](const TensorList& in) { return TensorList{run(in)}; },
          [composite](const TensorList& in) { return TensorList{composite(in)}; }, large};
}

/// A reason for OpEntry::not_at: a size in fewer dimensions than the norm takes.
inline std::string needs_dimensions(const Size& size, int at_least, const char* what) {
  return size.dims < at_least ? std::string(what) + " need more dimensions: an error" : "";
}

// The families, each in its own file.
void add_row_norm_ops(OpTable& table);
void add_fused_norm_ops(OpTable& table);
void add_group_norm_ops(OpTable& table);
void add_point_norm_ops(OpTable& table);
void add_column_norm_ops(OpTable& table);
void add_weight_norm_ops(OpTable& table);

}  // namespace norma::test
