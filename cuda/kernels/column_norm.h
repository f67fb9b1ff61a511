// Norms whose statistics are those of a channel over all positions, on the device. x is [outer,
// channels, inner]; what is per channel is in the accumulate type (ops/backend.h).
#pragma once

#include "norma/cuda/kernels/row_norm.h"

#include <algorithm>

namespace norma::cuda_kernels {

struct ColumnShape {
  std::int64_t outer = 0, channels = 0, inner = 0;
  constexpr std::int64_t positions() const { return outer * inner; }
  constexpr std::int64_t count() const { return positions() * channels; }
};

/// How the positions of a channel are cut: by the shape alone, so that sums repeat bit for bit.
struct ColumnParts {
  std::int64_t parts, positions_per_part;
};
inline ColumnParts column_parts(const ColumnShape& s) {
  const std::int64_t per_part = std::max<std::int64_t>(256, (s.positions() + 127) / 128);
  return {std::max<std::int64_t>(1, (s.positions() + per_part - 1) / per_part), per_part};
}
/// Elements of workspace: three numbers of each part of each channel.
inline std::int64_t workspace_elements(const ColumnShape& s) {
  return 3 * column_parts(s).parts * s.channels;
}

/// mean may be null: then variance gets the mean square.
template <class T>
void column_statistics(const ColumnShape& shape, const T* x, const bool* mask,
                       statistic_t<T>* workspace, statistic_t<T>* mean, statistic_t<T>* variance,
                       statistic_t<T>* count, void* stream);
/// mean may be null: 0.
template <class T>
void column_sums(const ColumnShape& shape, const T* x, const statistic_t<T>* mean, const T* dy,
                 statistic_t<T>* workspace, statistic_t<T>* sum_dy, statistic_t<T>* sum_dy_d,
                 void* stream);
template <class T>
void column_affine(const ColumnShape& shape, const T* x, const bool* mask,
                   const statistic_t<T>* mean, const T* dy, const statistic_t<T>* a,
                   const statistic_t<T>* b, const statistic_t<T>* c, T* out, void* stream);

}  // namespace norma::cuda_kernels
