// What this machine can do at most, measured beside each benchmark: a fraction of it carries over
// to other machines and survives a busy neighbour, a bare time does neither.
#pragma once

#include <cstdint>

namespace norma::benchmarks {

/// Bytes per second, read plus written, of a copy between two buffers of `bytes` each with all
/// threads. The size decides which cache, or memory, is measured.
double copy_bandwidth(std::int64_t bytes);

/// float32 operations per second (a fused multiply-add is two) in registers with all threads.
double multiply_add_peak();

}  // namespace norma::benchmarks
