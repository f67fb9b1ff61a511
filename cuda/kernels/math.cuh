// The functions of <cmath> in the type of their argument: float's own, for double ones are slow on
// a GPU.
#pragma once

#include "norma/cuda/device.cuh"

namespace norma::cuda_kernels {

__device__ __forceinline__ float square_root(float x) { return sqrtf(x); }
__device__ __forceinline__ double square_root(double x) { return sqrt(x); }
__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }
__device__ __forceinline__ float logarithm(float x) { return logf(x); }
__device__ __forceinline__ double logarithm(double x) { return log(x); }
__device__ __forceinline__ float logarithm_1p(float x) { return log1pf(x); }
__device__ __forceinline__ double logarithm_1p(double x) { return log1p(x); }
__device__ __forceinline__ float power(float x, float exponent) { return powf(x, exponent); }
__device__ __forceinline__ double power(double x, double exponent) { return pow(x, exponent); }
__device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
__device__ __forceinline__ double magnitude(double x) { return fabs(x); }
__device__ __forceinline__ float sine(float x) { return sinf(x); }
__device__ __forceinline__ double sine(double x) { return sin(x); }
__device__ __forceinline__ float cosine(float x) { return cosf(x); }
__device__ __forceinline__ double cosine(double x) { return cos(x); }
__device__ __forceinline__ float hyperbolic_tangent(float x) { return tanhf(x); }
__device__ __forceinline__ double hyperbolic_tangent(double x) { return tanh(x); }
__device__ __forceinline__ float error_function(float x) { return erff(x); }
__device__ __forceinline__ double error_function(double x) { return erf(x); }

/// 1 / (1 + e^-x), without overflow for any x.
template <class C>
__device__ __forceinline__ C logistic(C x) {
  const C decay = exponential(-magnitude(x));
  return (x < C(0) ? decay : C(1)) / (C(1) + decay);
}

}  // namespace norma::cuda_kernels
