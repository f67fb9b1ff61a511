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

/// Of all inputs together.
inline std::int64_t elements(const OpSample& sample) {
  std::int64_t count = 0;
  for (const Tensor& input : sample.inputs) count += input.defined() ? input.numel() : 0;
  return count;
}

/// A shape of the bug museum (museum() below), and which of the optional parameters are there.
struct Size {
  std::int64_t rows, width;
  int dims = 2;
  bool weight = true, bias = true;
  /// [rows, width] in `dims` dimensions: [width], [rows, width], [a, b, width], [a, 1, b, width].
  Shape rows_shape() const;
  /// The same as [samples, channels, positions]: [rows, width], [a, width, b], [a, width, 1, b].
  Shape channels_shape() const;
  std::string label() const;
};
/// Sizes at which norm backwards of other frameworks were wrong: hard-coded warp sizes, row counts
/// past 65535, tails of blocks. Every norm runs at all of them.
const std::vector<Size>& museum();

struct OpErrorSample {
  std::string label;
  std::function<void()> call;
  std::string message;  ///< part of the text that must be thrown (as norma::Error)
};

struct OpEntry {
  std::string name;  ///< public name: "layer_norm"
  std::vector<OpSample> samples = {};
  std::vector<OpErrorSample> errors = {};
  std::vector<DType> dtypes = {float32, float64, float16, bfloat16};
  bool differentiable = true;  ///< false: no gradient suites (comparisons, argmax)
  bool second_order = true;
  bool thread_dependent =
      false;  ///< goes through the matrix product library: equal to rounding only
  std::string no_errors_because = {};   ///< why `errors` is empty
  std::string no_threads_because = {};  ///< why no sample has elements for two threads
  std::string no_empty_because = {};    ///< why no sample has an input without elements
  std::string no_golden_because = {};   ///< why there are no values from PyTorch
  std::string no_second_order_because = {};
  /// Of norms: the sample at one size of the museum; its first input is what is normalized.
  std::function<OpSample(const Size& size)> at_size = nullptr;
  std::string no_sizes_because = {};  ///< why `at_size` is empty in a norm
  /// Why there can be no sample at a size; empty where there is one.
  std::function<std::string(const Size& size)> not_at = nullptr;
  bool is_norm = false;  ///< set by add_norm_ops for all that it adds
  /// Values between the inputs and a result that are rounded to the dtype (support/rounding.h).
  int stored = 0;
  std::string stored_because = {};
};

using OpTable = std::vector<OpEntry>;

/// The samples of `op` and a few of the museum: one block, several, tails, many rows, wide rows.
std::vector<OpSample> samples_with_sizes(const OpEntry& op);

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
