// The op table: every operation once, with samples, and the generic suites of tests/ops/suites run
// over all of it.
//
// A sample is one call: the operation as a function of its tensor inputs, every other argument
// fixed. The inputs stand in float64 on the CPU (or in an integer type or bool); a suite converts
// floating-point inputs to the dtype it tests, moves them to its device, makes them non-contiguous,
// and so on. Samples stay away from kinks (relu at 0, ties of max) and are small enough for a full
// finite-difference Jacobian (numel at most ~60) unless `large` is set.
#pragma once

#include "norma/core/tensor.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace norma::test {

using OpFunction = std::function<TensorList(const TensorList& inputs)>;

struct OpSample {
  std::string label;  ///< "rows 3, no bias"
  TensorList inputs;  ///< undefined where an optional input is absent
  OpFunction run;
  OpFunction composite =
      nullptr;         ///< the definition in elementary operations; null for elementary operations
  bool large = false;  ///< skip finite differences: compared with the composite only
};

struct OpErrorSample {
  std::string label;
  std::function<void()> call;
  std::string message;  ///< part of the text that must be thrown (as norma::Error)
};

struct Tolerance {
  double rtol = 0.0;
  double atol = 0.0;
};

struct OpEntry {
  std::string name;  ///< public name: "layer_norm"
  std::vector<OpSample> samples = {};
  std::vector<OpErrorSample> errors = {};
  std::vector<DType> dtypes = {float32, float64, float16, bfloat16};
  bool differentiable = true;  ///< false: no gradient suites (comparisons, argmax)
  bool second_order = true;    ///< false needs a `reason`
  bool thread_dependent =
      false;  ///< goes through the matrix product library: equal to rounding only
  std::string no_errors_because = {};   ///< why `errors` is empty
  std::string no_threads_because = {};  ///< why no sample has elements for two threads
  std::string no_empty_because = {};    ///< why no sample has an input without elements
  std::string no_golden_because = {};   ///< why there are no values from PyTorch
  /// Where the default of the suite (by dtype) does not fit; each needs a `reason`.
  std::map<DType, Tolerance> tolerances = {};
  std::string reason = {};
};

using OpTable = std::vector<OpEntry>;

/// The whole table, built once. Families are tests/ops/table/*.cpp, listed in op_table.cpp there.
const OpTable& op_table();

void add_elementwise_ops(OpTable& table);
void add_activation_ops(OpTable& table);
void add_reduction_ops(OpTable& table);
void add_view_ops(OpTable& table);
void add_index_ops(OpTable& table);
void add_matmul_ops(OpTable& table);
void add_attention_ops(OpTable& table);
void add_softmax_ops(OpTable& table);
void add_loss_ops(OpTable& table);
void add_norm_ops(OpTable& table);
void add_random_ops(OpTable& table);

}  // namespace norma::test
