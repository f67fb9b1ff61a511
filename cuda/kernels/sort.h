// Sorting on the device.
#pragma once

#include <cstdint>

namespace norma::cuda_kernels {

/// Elements of the workspace of sort_positions.
std::int64_t sort_workspace_elements(std::int64_t count);
/// The positions 0 … count - 1 by their keys, which are in [0, limit); of equal keys the first
/// comes first. Returns where in the workspace they are.
const std::int64_t* sort_positions(const std::int64_t* keys, std::int64_t count, std::int64_t limit,
                                   std::int64_t* workspace, void* stream);

}  // namespace norma::cuda_kernels
