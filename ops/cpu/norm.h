// The kernels of norms by family: each `add_*` fills its slots of the table.
#pragma once

#include "norma/ops/backend.h"

namespace norma::cpu_kernels {

// clang-format off
void add_row_norm_kernels(Backend& table);     // row_norm.cpp
void add_dual_norm_kernels(Backend& table);    // dual_norm.cpp
void add_poly_norm_kernels(Backend& table);    // poly_norm.cpp
void add_squash_kernels(Backend& table);       // squash.cpp: squash, softcap
void add_column_norm_kernels(Backend& table);  // column_norm.cpp
// clang-format on

}  // namespace norma::cpu_kernels
