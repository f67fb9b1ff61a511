// What an operation must give for one sample in one dtype, and the check of a run against it.
#pragma once

#include "support/op_table.h"

#include <vector>

namespace norma::test {

/// How the inputs of a run and the gradients that come to it lie in memory.
enum class Layout : std::uint8_t {
  contiguous,
  gaps,        ///< dimensions reversed, every second element used
  transposed,  ///< the first and last dimension exchanged
  expanded,    ///< stride 0 in the first dimension of the first input and of the gradients
  misaligned,  ///< one element behind an aligned address
};
const char* layout_name(Layout layout);

/// The definition's results in float64 on the CPU, outputs before gradients, and how far they may
/// be missed. The definition runs on the inputs as the dtype rounds them, so that only the rounding
/// of the operation itself is left: support/rounding.h says how much that may be.
class Reference {
 public:
  /// `equal_rows`: all rows of the gradients that come to the operation are one, as
  /// Layout::expanded needs them.
  Reference(const OpEntry& op, const OpSample& sample, DType dtype, bool equal_rows = false);
  /// Runs the operation and compares (Catch2 assertions).
  void check(const Device& device, Layout layout) const;

 private:
  const OpEntry& op_;
  const OpSample& sample_;
  DType dtype_;
  TensorList inputs_, cotangents_, expected_;
  std::size_t outputs_ = 0;
  std::vector<std::vector<double>> sizes_;
};

}  // namespace norma::test
