// Elements of any dtype: what they are computed in, and conversions.
#pragma once

#include "norma/cuda/device.cuh"

#include <type_traits>

namespace norma::cuda_kernels {

template <class T>
inline constexpr bool is_16_bit = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_floating = std::is_floating_point_v<T> || is_16_bit<T>;

/// The type in which values of T are computed and accumulated, as norma::accumulate_t: float for
/// 16-bit floats, int64 for bool and integers.
template <class T>
using compute_t = std::conditional_t<std::is_integral_v<T>, std::int64_t, device::accumulate_t<T>>;

/// Any dtype to any other, as the CPU converts: 16-bit floats by way of float.
template <class To, class From>
__device__ __forceinline__ To element(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (is_16_bit<From>)
    return element<To>(device::convert<float>(value));
  else if constexpr (is_16_bit<To>)
    return device::convert<To>(static_cast<float>(value));
  else
    return static_cast<To>(value);
}

// Calls MACRO(T) for the types of dtypes: kernels are instantiated with it.
#define NORMA_FOR_FLOATING_TYPES(MACRO) MACRO(float) MACRO(double) MACRO(Half) MACRO(BFloat16)
#define NORMA_FOR_ALL_TYPES(MACRO) \
  NORMA_FOR_FLOATING_TYPES(MACRO) MACRO(bool) MACRO(std::int32_t) MACRO(std::int64_t)
// For the sizes of their elements: kernels that only move bits.
#define NORMA_FOR_SIZES(MACRO) \
  MACRO(std::uint8_t) MACRO(std::uint16_t) MACRO(std::uint32_t) MACRO(std::uint64_t)

}  // namespace norma::cuda_kernels
