// Time on the GPU without launch gaps, with a cold L2 cache. timer.cu does it by CUDA;
// timer_emulated.cpp stands in where kernels run in the emulator, and measures nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace norma::benchmarks {

struct Gpu {
  std::string name;
  std::string driver = {}, runtime = {};  ///< versions of CUDA
  std::int64_t memory_bytes = 0, free_bytes = 0, l2_bytes = 0;
  bool measures = false;
};
Gpu gpu();

/// Seconds of one of `calls` launches, the median of several replays of a graph of all of them. L2
/// is overwritten before each replay: every call should have tensors of its own.
double seconds_of(int calls, const std::function<void(int call, void* stream)>& launch);

/// Seconds in which `calls` copies, together as cold, read and write `bytes` each (half of them
/// read): the faster of cudaMemcpyAsync and of a kernel with accesses of 16 bytes.
double copy_seconds(int calls, std::int64_t bytes);

/// Returns when the GPU has done all; throws std::runtime_error where it failed.
void synchronize();

}  // namespace norma::benchmarks
