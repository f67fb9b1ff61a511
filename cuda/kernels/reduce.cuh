// Sums and maxima over groups of threads, the same in every thread of the group, in a fixed order.
#pragma once

#include "norma/cuda/device.cuh"

namespace norma::cuda_kernels {

using device::all_lanes;
using device::warp_size;

struct Plus {
  template <class C>
  __device__ static __forceinline__ C combine(C a, C b) {
    return a + b;
  }
};
/// b where that is NaN.
struct Larger {
  template <class C>
  __device__ static __forceinline__ C combine(C a, C b) {
    return a > b ? a : b;
  }
};

/// Combines values over `group` neighbouring threads, up to `max_values` at a time: a power of two
/// up to a warp, or whole warps that are the whole block. All threads of the block take part.
///
/// Over a block it takes one barrier: two scratch areas alternate, so that whoever writes the next
/// value does not overtake whoever still reads the last one.
template <class Op, int group, class C, int max_values>
class GroupReduce {
 public:
  static constexpr int warps = group > warp_size ? group / warp_size : 1;
  /// Elements of shared memory that the constructor takes.
  static constexpr int scratch_count = group > warp_size ? 2 * max_values* warps : 1;

  __device__ explicit GroupReduce(C* scratch) : scratch_(scratch) {}

  __device__ __forceinline__ C operator()(C value) {
    C values[1] = {value};
    (*this)(values);
    return values[0];
  }
  template <int count>
  __device__ __forceinline__ void operator()(C (&values)[count]) {
    static_assert(count <= max_values);
    NORMA_UNROLL
    for (int i = 0; i < count; ++i)
      values[i] = over_lanes<(group < warp_size ? group : warp_size)>(values[i]);
    if constexpr (group > warp_size) {
      const int lane = static_cast<int>(threadIdx.x) % warp_size;
      C* const area = scratch_ + turn_ * max_values * warps;
      turn_ ^= 1;
      if (lane == 0) {
        NORMA_UNROLL
        for (int i = 0; i < count; ++i)
          area[i * warps + static_cast<int>(threadIdx.x) / warp_size] = values[i];
      }
      __syncthreads();
      NORMA_UNROLL
      for (int i = 0; i < count; ++i) values[i] = over_lanes<warps>(area[i * warps + lane % warps]);
    }
  }

 private:
  template <int lanes>
  __device__ static __forceinline__ C over_lanes(C value) {
    NORMA_UNROLL
    for (int step = lanes / 2; step > 0; step /= 2)
      value = Op::combine(value, __shfl_xor_sync(all_lanes, value, step));
    return value;
  }

  C* scratch_;
  int turn_ = 0;
};
template <int group, class C, int max_values = 2>
using GroupSum = GroupReduce<Plus, group, C, max_values>;
template <int group, class C>
using GroupMax = GroupReduce<Larger, group, C, 1>;

/// Count, mean and sum of squared differences of some values.
template <class C>
struct Moments {
  C count, mean, m2;
};
/// Of both together. (Chan, Golub, LeVeque, 1979.)
template <class C>
__device__ __forceinline__ Moments<C> merge(const Moments<C>& a, const Moments<C>& b) {
  const C count = a.count + b.count;
  if (count == C(0)) return a;
  const C delta = b.mean - a.mean;
  const C share = b.count / count;
  return {count, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share};
}
/// Of all threads of a block of `threads`; scratch of 3 * threads / 32 elements.
template <int threads, class C>
__device__ Moments<C> merge_block(Moments<C> moments, C* scratch) {
  constexpr int warps = threads / warp_size;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const auto merge_lanes = [&moments](int lanes) {
    for (int step = lanes / 2; step > 0; step /= 2) {
      const Moments<C> other = {__shfl_xor_sync(all_lanes, moments.count, step),
                                __shfl_xor_sync(all_lanes, moments.mean, step),
                                __shfl_xor_sync(all_lanes, moments.m2, step)};
      // The lower lane's come first on both sides, so that both get the same bits.
      moments = (static_cast<int>(threadIdx.x) & step) == 0 ? merge(moments, other)
                                                            : merge(other, moments);
    }
  };
  merge_lanes(warp_size);
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  if (lane == 0) {
    scratch[3 * warp] = moments.count;
    scratch[3 * warp + 1] = moments.mean;
    scratch[3 * warp + 2] = moments.m2;
  }
  __syncthreads();
  const int from = lane % warps;
  moments = {scratch[3 * from], scratch[3 * from + 1], scratch[3 * from + 2]};
  merge_lanes(warps);
  return moments;
}

}  // namespace norma::cuda_kernels
