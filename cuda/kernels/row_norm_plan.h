// How the sums over rows (dweight, dbias) are cut into parts. A function of the shape alone: the
// order of every sum is the same on every GPU, and so are its bits.
#pragma once

#include "norma/cuda/kernels/row_norm.h"

#include <algorithm>

namespace norma::cuda_kernels {

/// The parts of the rows that share one row of the weight.
struct RowParts {
  std::int64_t parts;
  std::int64_t rows_per_part;  ///< the last may have fewer
};

/// Blocks of the persistent backward, each of which leaves a row of partial sums: enough to fill a
/// large GPU, few enough that the sums are a small part of the traffic.
inline std::int64_t persistent_blocks(const RowNormShape& s) {
  const std::int64_t limit = s.width <= 256 ? 1024 : s.width <= 2048 ? 512 : 256;
  return std::min(limit, s.rows);
}

/// The parts of the kernel over columns.
inline RowParts column_parts(const RowNormShape& s) {
  const std::int64_t share = s.weight_rows > 0 ? s.rows / s.weight_rows : 0;
  const std::int64_t wanted =
      std::max<std::int64_t>(1, 256 / std::max<std::int64_t>(1, s.weight_rows));
  const std::int64_t per_part = std::max<std::int64_t>(32, (share + wanted - 1) / wanted);
  return {(share + per_part - 1) / per_part, per_part};
}

/// Elements of the backward's workspace: two sums of every part, and a row for each row of the
/// weight.
inline std::int64_t workspace_elements(const RowNormShape& s) {
  const std::int64_t parts = std::max(persistent_blocks(s), column_parts(s).parts * s.weight_rows);
  return (2 * parts + s.weight_rows) * s.width;
}

}  // namespace norma::cuda_kernels
