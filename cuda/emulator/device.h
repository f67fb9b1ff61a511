// What CUDA gives a kernel, for g++: the same names, run by the emulator.
//
// Included by norma/cuda/device.cuh where nvcc does not compile; kernels include that.
#pragma once

#include "norma/cuda/emulator/grid.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

// The variables of the running thread. threadIdx changes with every switch.
extern constinit thread_local norma::emulator::Index3 threadIdx;
extern constinit thread_local norma::emulator::Index3 blockIdx;
extern constinit thread_local norma::emulator::Index3 blockDim;
extern constinit thread_local norma::emulator::Index3 gridDim;

namespace norma::emulator {

/// A value of a shuffle as 64 bits, and back.
template <class T>
std::uint64_t to_bits(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <class T>
T shuffle(unsigned mask, T value, int source, const char* file, int line) {
  return from_bits<T>(BlockExecutor::current().warp_call({.kind = WarpCall::Kind::shuffle,
                                                          .mask = mask,
                                                          .source_lane = source,
                                                          .value = to_bits(value),
                                                          .site = {file, line}}));
}
inline unsigned vote(unsigned mask, bool yes, const char* file, int line) {
  return static_cast<unsigned>(BlockExecutor::current().warp_call(
      {.kind = WarpCall::Kind::vote, .mask = mask, .value = yes ? 1u : 0u, .site = {file, line}}));
}

template <class... Parameters>
struct BoundKernel {
  void (*kernel)(Parameters...);
  std::tuple<Parameters...> arguments;
  static void run(const void* self) {
    const auto& bound = *static_cast<const BoundKernel*>(self);
    std::apply(bound.kernel, bound.arguments);
  }
};

}  // namespace norma::emulator

// The call site comes as default arguments, not as a return address: the optimizer duplicates
// calls, and one barrier would look like two.
#define NORMA_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(NORMA_SITE) {
  norma::emulator::BlockExecutor::current().barrier({file, line});
}
inline void __syncwarp(unsigned mask = 0xffffffffu, NORMA_SITE) {
  norma::emulator::BlockExecutor::current().warp_call({.mask = mask, .site = {file, line}});
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, NORMA_SITE) {
  const int segment = norma::emulator::BlockExecutor::current().lane() & ~(width - 1);
  return norma::emulator::shuffle(mask, value, segment + (source & (width - 1)), file, line);
}
// Beyond the ends of a segment a lane gets its own value.
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, NORMA_SITE) {
  const int lane = norma::emulator::BlockExecutor::current().lane();
  const int source = lane - static_cast<int>(delta);
  return norma::emulator::shuffle(mask, value, source < (lane & ~(width - 1)) ? lane : source, file,
                                  line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, NORMA_SITE) {
  const int lane = norma::emulator::BlockExecutor::current().lane();
  const int source = lane + static_cast<int>(delta);
  return norma::emulator::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, file,
                                  line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, NORMA_SITE) {
  const int lane = norma::emulator::BlockExecutor::current().lane();
  const int source = lane ^ lane_mask;
  return norma::emulator::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, file,
                                  line);
}

inline unsigned __ballot_sync(unsigned mask, int yes, NORMA_SITE) {
  return norma::emulator::vote(mask, yes != 0, file, line);
}
inline int __any_sync(unsigned mask, int yes, NORMA_SITE) {
  return norma::emulator::vote(mask, yes != 0, file, line) != 0;
}
inline int __all_sync(unsigned mask, int yes, NORMA_SITE) {
  return norma::emulator::vote(mask, yes != 0, file, line) == mask;
}
#undef NORMA_SITE

// Blocks run on several host threads, so these are atomic. They return the old value.
template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_add(value);
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).exchange(value);
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  std::atomic_ref<T>(*address).compare_exchange_strong(expected, value);
  return expected;
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  std::atomic_ref<T> shared(*address);
  T old = shared.load();
  while (old < value && !shared.compare_exchange_weak(old, value)) {
  }
  return old;
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  std::atomic_ref<T> shared(*address);
  T old = shared.load();
  while (value < old && !shared.compare_exchange_weak(old, value)) {
  }
  return old;
}
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
