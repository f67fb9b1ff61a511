// Stable counting by 8-bit digits of the key, the lowest first. A warp counts the digits of a tile,
// 32 positions at a time; sums over (digit, tile) say where its positions go. No atomics: the order
// within a tile is that of the positions.
#include "norma/cuda/kernels/sort.h"

#include "norma/cuda/device.cuh"
#include "norma/cuda/kernels/reduction.h"

#include <bit>

namespace norma::cuda_kernels {

namespace {

using device::all_lanes;
using device::warp_size;

constexpr int digit_bits = 8;
constexpr int digits = 1 << digit_bits;
constexpr std::int64_t tile = 1024;

std::int64_t tiles_of(std::int64_t count) { return (count + tile - 1) / tile; }

/// `from`: positions in the order so far, null for that of the positions. counts [digits, tiles].
/// Counts the digits, or (`moves`) writes the positions to where the inclusive sums of the counts
/// say.
template <bool moves>
__global__ void __launch_bounds__(warp_size)
    digit_kernel(const std::int64_t* keys, const std::int64_t* from, std::int64_t count, int shift,
                 std::int64_t* counts, const std::int64_t* sums, std::int64_t* to) {
  NORMA_SHARED(std::int64_t, next, digits);
  const int lane = static_cast<int>(threadIdx.x);
  const unsigned lower_lanes = (1u << lane) - 1;
  for (int d = lane; d < digits; d += warp_size) {
    const std::int64_t at = static_cast<std::int64_t>(d) * gridDim.x + blockIdx.x;
    next[d] = moves ? sums[at] - counts[at] : 0;
  }
  __syncwarp();
  const std::int64_t first = blockIdx.x * tile;
  for (std::int64_t i = first + lane; i - lane < first + tile; i += warp_size) {
    const bool present = i < count;
    const std::int64_t position = !present ? 0 : from != nullptr ? from[i] : i;
    const int digit = present ? static_cast<int>(keys[position] >> shift) & (digits - 1) : 0;
    // The lanes with this digit.
    unsigned peers = __ballot_sync(all_lanes, present);
    NORMA_UNROLL
    for (int bit = 0; bit < digit_bits; ++bit) {
      const bool set = (digit >> bit & 1) != 0;
      const unsigned lanes = __ballot_sync(all_lanes, set);
      peers &= set ? lanes : ~lanes;
    }
    if (moves && present) to[next[digit] + std::popcount(peers & lower_lanes)] = position;
    __syncwarp();
    if (present && (peers & lower_lanes) == 0) next[digit] += std::popcount(peers);
    __syncwarp();
  }
  if constexpr (!moves)
    for (int d = lane; d < digits; d += warp_size)
      counts[static_cast<std::int64_t>(d) * gridDim.x + blockIdx.x] = next[d];
}

}  // namespace

std::int64_t sort_workspace_elements(std::int64_t count) {
  return 2 * count + 2 * digits * tiles_of(count);
}

const std::int64_t* sort_positions(const std::int64_t* keys, std::int64_t count, std::int64_t limit,
                                   std::int64_t* workspace, void* stream) {
  std::int64_t* const orders[] = {workspace, workspace + count};
  std::int64_t* const counts = workspace + 2 * count;
  const std::int64_t* from = nullptr;
  int turn = 0;
  const std::int64_t all = digits * tiles_of(count);
  std::int64_t* const sums = counts + all;
  if (count == 0) return workspace;
  const device::LaunchConfig config{.name = "sort_positions",
                                    .grid = {static_cast<unsigned>(tiles_of(count))},
                                    .block = {warp_size},
                                    .stream = stream};
  for (int shift = 0; shift == 0 || (limit - 1) >> shift != 0; shift += digit_bits) {
    device::launch(config, digit_kernel<false>, keys, from, count, shift, counts, nullptr, nullptr);
    cumsum<std::int64_t, std::int64_t>({1, all, 1}, false, counts, sums, stream);
    device::launch(config, digit_kernel<true>, keys, from, count, shift, counts, sums,
                   orders[turn]);
    from = orders[turn];
    turn ^= 1;
  }
  return from;
}

}  // namespace norma::cuda_kernels
