// Which kernel serves a launch of a row norm. Included once for each dtype, by row_norm_<dtype>.cu.
#pragma once

#include "norma/cuda/kernels/row_norm_backward.cuh"
#include "norma/cuda/kernels/row_norm_plan.h"
#include "norma/cuda/kernels/rows_launch.cuh"

#include <algorithm>
#include <initializer_list>

namespace norma::cuda_kernels {

namespace {

/// The widest vector that all pointers and the row length allow: 16 bytes, 4 bytes (for 16-bit
/// types), or one element.
template <class T>
int vector_width(std::int64_t width, std::initializer_list<const void*> pointers) {
  for (const int vec : {full_vector<T>, 2}) {
    // float64 is for gradient checks: not worth kernels of its own.
    if (sizeof(T) == 8 || (vec == 2 && sizeof(T) != 2)) continue;
    if (takes_vectors<T>(vec, width, pointers)) return vec;
  }
  return 1;
}

/// Calls use.operator()<Geometry>() with the smallest group that holds a row; false where none
/// does.
template <class T, int vec, bool widest, class Use>
bool with_geometry(std::int64_t width, const Use& use) {
  constexpr int full = full_vector<T>;
  const auto fits = [&]<class G>(G) {
    if (width > G::capacity) return false;
    use.template operator()<G>();
    return true;
  };
  if (fits(Geometry<8, full, vec, 4>{}) || fits(Geometry<32, full, vec, 4>{}) ||
      fits(Geometry<32, 4 * full, vec, 1>{}) || fits(Geometry<256, 4 * full, vec, 1>{}))
    return true;
  if constexpr (widest)
    return fits(Geometry<512, 4 * full, vec, 1>{});
  else
    return false;
}
/// Single 16-bit elements, of odd lengths and addresses, are for the general kernels alone, pairs
/// for the others: kernels of many small accesses take nvcc the longest.
template <class T, bool general, bool widest, class Use>
bool with_geometry(int vec, std::int64_t width, const Use& use) {
  if constexpr (sizeof(T) < 8)
    if (vec == full_vector<T>) return with_geometry<T, full_vector<T>, widest>(width, use);
  if constexpr (sizeof(T) == 2 && !general)
    return with_geometry<T, 2, widest>(width, use);
  else
    return with_geometry<T, 1, widest>(width, use);
}

/// Whether the kernels for LayerNorm and RMSNorm do: one row of weights as wide as the rows.
bool is_simple(const RowNormShape& s, const RowNormParams& p) {
  return !p.compressed && p.statistic_width == s.width && p.detached_slope == 0.0 &&
         s.weight_rows == 1 && s.columns == s.width;
}

/// Which kernels serve a launch: general or not, and the elements of an access.
struct Path {
  bool simple;
  int vec;
};
template <class T>
Path path_of(const RowNormShape& s, const RowNormParams& p, std::initializer_list<const void*> rows,
             std::initializer_list<const void*> weights) {
  const int of_rows = vector_width<T>(s.width, rows);
  const int of_all = std::min(of_rows, vector_width<T>(s.width, weights));
  // Dropout beside narrow accesses is more than the registers of a thread.
  const bool drops = p.dropout_p == 0.0 || of_all == full_vector<T>;
  if (is_simple(s, p) && (sizeof(T) != 2 || of_all > 1) && drops) return {true, of_all};
  return {false, of_rows};
}

template <class Use>
void with_kind(bool simple, bool centred, const Use& use) {
  if (!simple)
    use.template operator()<GeneralRow>();
  else if (centred)
    use.template operator()<CentredRow>();
  else
    use.template operator()<PlainRow>();
}

}  // namespace

template <class T>
void row_norm_forward(const RowNormForward<T>& a, void* stream) {
  const RowNormShape& s = a.shape;
  if (s.rows == 0 || s.width == 0) return;
  const Path path = path_of<T>(s, a.params, {a.x, a.residual, a.out, a.sum}, {a.weight, a.bias});
  bool done = false;
  with_kind(path.simple, a.params.centred, [&]<class Kind>() {
    done = with_geometry<T, Kind::general, true>(path.vec, s.width, [&]<class G>() {
      device::launch({.name = "row_norm_forward",
                      .grid = {blocks_for(s.rows, G::block_rows)},
                      .block = {G::threads},
                      .stream = stream},
                     row_norm_forward_kernel<T, Kind, G>, a);
    });
  });
  if (!done)
    device::launch({.name = "row_norm_forward_streaming",
                    .grid = {static_cast<unsigned>(s.rows)},
                    .block = {streaming_threads},
                    .stream = stream},
                   row_norm_forward_streaming_kernel<T>, a);
}

template <class T>
void row_norm_backward(const RowNormBackward<T>& a, void* stream) {
  using C = statistic_t<T>;
  const RowNormShape& s = a.shape;
  if (s.rows == 0 || s.width == 0) {
    fill_zero(a.dweight, s.weight_rows * s.columns, stream);
    fill_zero(a.dbias, s.weight_rows * s.columns, stream);
    return;
  }
  const Path path = path_of<T>(s, a.params, {a.x, a.dy, a.dsum, a.dx, a.dresidual}, {a.weight});
  const bool wants_rows = a.dx != nullptr || a.dresidual != nullptr;
  const bool wants_sums = a.dweight != nullptr || a.dbias != nullptr;

  std::int64_t parts = 0;  // rows of partial sums that the first kernel leaves
  const auto bias_area = [&](std::int64_t count) {
    return a.workspace + (a.dweight != nullptr ? s.weight_rows * count * s.width : 0);
  };
  with_kind(path.simple, a.params.centred, [&]<class Kind>() {
    // 32 elements of 16 bits, beside as many of dy, are more than the registers of 512 threads.
    constexpr bool widest = sizeof(T) != 2;
    const bool resident =
        with_geometry<T, Kind::general, widest>(path.vec, s.width, [&]<class G>() {
          constexpr bool accumulates = !Kind::general && G::group <= 256;
          if (!wants_rows && !(accumulates && wants_sums)) return;
          std::int64_t blocks = blocks_for(s.rows, G::block_rows);
          if (accumulates && wants_sums) {
            blocks = std::min(blocks, persistent_blocks(s));
            parts = blocks;
          }
          device::launch({.name = "row_norm_backward",
                          .grid = {static_cast<unsigned>(blocks)},
                          .block = {G::threads},
                          .stream = stream},
                         row_norm_backward_kernel<T, Kind, G>, a,
                         parts > 0 && a.dweight != nullptr ? a.workspace : nullptr,
                         parts > 0 && a.dbias != nullptr ? bias_area(parts) : nullptr);
        });
    if (!resident && wants_rows)
      device::launch({.name = "row_norm_backward_streaming",
                      .grid = {static_cast<unsigned>(s.rows)},
                      .block = {backward_streaming_threads},
                      .stream = stream},
                     row_norm_backward_streaming_kernel<T>, a);
  });
  if (!wants_sums) return;

  if (parts == 0) {
    const RowParts cut = column_parts(s);
    parts = cut.parts;
    device::launch(
        {.name = "row_norm_column_sums",
         .grid = {blocks_for(s.width, tile_columns) * static_cast<unsigned>(s.weight_rows * parts)},
         .block = {tile_columns, tile_rows},
         .stream = stream},
        row_norm_column_sums_kernel<T>, a, cut, a.dweight != nullptr ? a.workspace : nullptr,
        a.dbias != nullptr ? bias_area(parts) : nullptr);
  }
  C* const buffer = a.workspace + workspace_elements(s) - s.weight_rows * s.width;
  if (a.dweight != nullptr)
    finish_sums<T>(a.workspace, parts, s, a.params.scale, buffer, a.dweight, stream);
  if (a.dbias != nullptr)
    finish_sums<T>(bias_area(parts), parts, s, a.params.scale, buffer, a.dbias, stream);
}

#define NORMA_INSTANTIATE_ROW_NORM(T)                                 \
  template void row_norm_forward<T>(const RowNormForward<T>&, void*); \
  template void row_norm_backward<T>(const RowNormBackward<T>&, void*)

}  // namespace norma::cuda_kernels
