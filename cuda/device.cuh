// The device, as kernels see it: all of CUDA that norma's kernels use.
//
// Compiled by nvcc this is CUDA. Compiled by a C++ compiler it is the emulator, which runs the same
// source on any machine and checks what hardware does not (docs/emulator.md). A kernel is standard
// CUDA C++ with three rules, so that it compiles as both:
//
// - it is launched with `launch`, never with <<<>>>;
// - its shared memory is NORMA_SHARED or NORMA_DYNAMIC_SHARED, so that it can be poisoned;
// - 16-byte accesses go through Vector.
#pragma once

#include "norma/core/half.h"

#include <cstdint>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>
#else
#include "norma/cuda/emulator/device.h"
#endif

// A shared array of `count` elements, one for the block. Every barrier rule of __shared__ holds; it
// starts with garbage.
//
// NORMA_DYNAMIC_SHARED(type, name) is the one whose size the launch gives in `shared_bytes`.
#ifdef __CUDACC__
#define NORMA_SHARED(type, name, count) __shared__ type name[count]
#define NORMA_DYNAMIC_SHARED(type, name)                                \
  extern __shared__ __align__(16) unsigned char norma_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(norma_dynamic_shared)
#define NORMA_UNROLL _Pragma("unroll")
#else
#define NORMA_SHARED(type, name, count)                                                         \
  static const char norma_shared_key_##name = 0;                                                \
  type* const name = static_cast<type*>(norma::emulator::BlockExecutor::current().shared_array( \
      &norma_shared_key_##name, #name, sizeof(type) * static_cast<std::size_t>(count)))
#define NORMA_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(norma::emulator::BlockExecutor::current().dynamic_shared())
#define NORMA_UNROLL
#endif

namespace norma::device {

inline constexpr int warp_size = 32;
inline constexpr unsigned all_lanes = 0xffffffffu;

// -- numbers --------------------------------------------------------------------------------------

/// float for 16-bit types and float, double for double: what kernels compute in.
template <class T>
struct Accumulate {
  using type = float;
};
template <>
struct Accumulate<double> {
  using type = double;
};
template <class T>
using accumulate_t = typename Accumulate<T>::type;

/// `value` as To, rounded to nearest even.
template <class To, class From>
__device__ __forceinline__ To convert(From value) {
  return static_cast<To>(value);
}
#ifdef __CUDACC__
template <>
__device__ __forceinline__ float convert<float, Half>(Half value) {
  return __half2float(__ushort_as_half(value.bits));
}
template <>
__device__ __forceinline__ float convert<float, BFloat16>(BFloat16 value) {
  return __bfloat162float(__ushort_as_bfloat16(value.bits));
}
template <>
__device__ __forceinline__ Half convert<Half, float>(float value) {
  Half result;
  result.bits = __half_as_ushort(__float2half_rn(value));
  return result;
}
template <>
__device__ __forceinline__ BFloat16 convert<BFloat16, float>(float value) {
  BFloat16 result;
  result.bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));
  return result;
}
#endif

// -- memory ---------------------------------------------------------------------------------------

/// N elements that are read and written at once; at most 16 bytes, aligned to their size.
template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  static_assert(sizeof(T) * N <= 16 && (N & (N - 1)) == 0);
  T values[N];
  __device__ __forceinline__ T& operator[](int i) { return values[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return values[i]; }
};

template <int N, class T>
__device__ __forceinline__ void check_alignment([[maybe_unused]] const T* address) {
#ifndef __CUDACC__
  if (reinterpret_cast<std::uintptr_t>(address) % (sizeof(T) * N) != 0)
    emulator::BlockExecutor::current().fail(
        fmt::format("an access of {} bytes must be aligned to its size", sizeof(T) * N),
        fmt::format("address {}", static_cast<const void*>(address)), "use narrower vectors");
#endif
}
template <int N, class T>
__device__ __forceinline__ Vector<T, N> load(const T* address) {
  check_alignment<N>(address);
  return *reinterpret_cast<const Vector<T, N>*>(address);
}
template <int N, class T>
__device__ __forceinline__ void store(T* address, const Vector<T, N>& vector) {
  check_alignment<N>(address);
  *reinterpret_cast<Vector<T, N>*>(address) = vector;
}

// -- launch ---------------------------------------------------------------------------------------

struct Extent {
  unsigned x = 1, y = 1, z = 1;
};
struct LaunchConfig {
  const char* name;  ///< in errors
  Extent grid = {};
  Extent block = {};
  unsigned shared_bytes = 0;  ///< of NORMA_DYNAMIC_SHARED
  void* stream = nullptr;     ///< a cudaStream_t
};

/// Runs `kernel(arguments...)` in every thread. Throws std::runtime_error (CUDA) or KernelError.
///
///     launch({.name = "add", .grid = {blocks}, .block = {256}}, add<float>, x, y, count);
template <class... Parameters, class... Arguments>
void launch(const LaunchConfig& config, void (*kernel)(Parameters...), Arguments... arguments) {
#ifdef __CUDACC__
  constexpr unsigned without_asking = 48u << 10;
  cudaError_t error = cudaSuccess;
  if (config.shared_bytes > without_asking)
    error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(config.shared_bytes));
  if (error == cudaSuccess) {
    kernel<<<dim3(config.grid.x, config.grid.y, config.grid.z),
             dim3(config.block.x, config.block.y, config.block.z), config.shared_bytes,
             static_cast<cudaStream_t>(config.stream)>>>(Parameters(arguments)...);
    error = cudaGetLastError();
  }
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("[") + config.name +
                             "] the launch must succeed; got: " + cudaGetErrorString(error));
#else
  const emulator::BoundKernel<Parameters...> bound{kernel, {Parameters(arguments)...}};
  emulator::run_grid({config.name,
                      {config.grid.x, config.grid.y, config.grid.z},
                      {config.block.x, config.block.y, config.block.z},
                      config.shared_bytes,
                      bound.run,
                      &bound});
#endif
}

}  // namespace norma::device
