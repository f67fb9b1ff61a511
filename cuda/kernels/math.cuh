// The functions of <cmath> in the type of their argument: float's own, for double ones are slow on
// a GPU.
#pragma once

#include "norma/cuda/device.cuh"

namespace norma::cuda_kernels {

/// The Math of the device, for formulas (ops/formulas).
struct DeviceMath {
  static __device__ __forceinline__ float abs(float x) { return fabsf(x); }
  static __device__ __forceinline__ double abs(double x) { return fabs(x); }
  static __device__ __forceinline__ float sqrt(float x) { return sqrtf(x); }
  static __device__ __forceinline__ double sqrt(double x) { return ::sqrt(x); }
  static __device__ __forceinline__ float exp(float x) { return expf(x); }
  static __device__ __forceinline__ double exp(double x) { return ::exp(x); }
  static __device__ __forceinline__ float log(float x) { return logf(x); }
  static __device__ __forceinline__ double log(double x) { return ::log(x); }
  static __device__ __forceinline__ float log1p(float x) { return log1pf(x); }
  static __device__ __forceinline__ double log1p(double x) { return ::log1p(x); }
  static __device__ __forceinline__ float pow(float x, float exponent) { return powf(x, exponent); }
  static __device__ __forceinline__ double pow(double x, double exponent) {
    return ::pow(x, exponent);
  }
  static __device__ __forceinline__ float sin(float x) { return sinf(x); }
  static __device__ __forceinline__ double sin(double x) { return ::sin(x); }
  static __device__ __forceinline__ float cos(float x) { return cosf(x); }
  static __device__ __forceinline__ double cos(double x) { return ::cos(x); }
  static __device__ __forceinline__ float tanh(float x) { return tanhf(x); }
  static __device__ __forceinline__ double tanh(double x) { return ::tanh(x); }
  static __device__ __forceinline__ float erf(float x) { return erff(x); }
  static __device__ __forceinline__ double erf(double x) { return ::erf(x); }

  /// exp(x) for x <= 0: what is cheaper on the CPU is not here.
  template <class C>
  static __device__ __forceinline__ C exp_nonpositive(C x) {
    return exp(x);
  }

  /// Distribution function and density of the normal distribution.
  template <class C>
  struct Normal {
    C cdf, density;
  };
  template <class C>
  static __device__ __forceinline__ Normal<C> normal(C x) {
    constexpr C half_sqrt2 = C(0.707106781186547524);
    return {C(0.5) * (C(1) + erf(x * half_sqrt2)), C(0.398942280401432678) * exp(C(-0.5) * x * x)};
  }

  /// 1 / (1 + e^-x), without overflow for any x.
  template <class C>
  static __device__ __forceinline__ C sigmoid(C x) {
    const C decay = exp(-abs(x));
    return (x < C(0) ? decay : C(1)) / (C(1) + decay);
  }
};

}  // namespace norma::cuda_kernels
