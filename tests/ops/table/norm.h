// What the samples of the norms share.
#pragma once

#include "support/op_table.h"

namespace norma::test {

/// (rows, width) of bugs in the wild: hard-coded warp sizes, row counts past 65535, tails of
/// blocks.
struct Size {
  std::int64_t rows, width;
};
inline constexpr Size museum[] = {
    {1, 1},    {2, 3},    {31, 31},   {33, 32},  {31, 33},  {2, 255},  {33, 768},  {3, 1023},
    {2, 1024}, {3, 1025}, {33, 2048}, {2, 4096}, {2, 8192}, {2, 8197}, {2, 65536}, {65537, 3}};

/// A sample of an operation with one output.
template <class Run, class Composite>
OpSample norm_sample(const std::string& label, const TensorList& inputs, const Run& run,
                     const Composite& composite, bool large = false) {
  return {label, inputs, [run](const TensorList& in) { return TensorList{run(in)}; },
          [composite](const TensorList& in) { return TensorList{composite(in)}; }, large};
}

/// Takes the samples of more than 65536 rows out of `entry`, into one with a tolerance of its own.
OpEntry split_many_rows(OpEntry& entry);
/// Adds `entry`, its samples of many rows apart.
void add_with_many_rows(OpTable& table, OpEntry entry);

// The families, each in its own file.
void add_row_norm_ops(OpTable& table);
void add_fused_norm_ops(OpTable& table);
void add_group_norm_ops(OpTable& table);
void add_point_norm_ops(OpTable& table);
void add_column_norm_ops(OpTable& table);
void add_weight_norm_ops(OpTable& table);

}  // namespace norma::test
