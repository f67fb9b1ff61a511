// Optimizer steps on the device: a launch serves many tensors, so that small ones cost no launch of
// their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace norma::cuda_kernels {

/// Elements of one tensor that a block works on.
inline constexpr std::int64_t optimizer_chunk = 2048;

/// Tensors of one dtype with `streams` pointers each; small enough for a kernel's arguments.
template <std::size_t streams>
struct TensorBatch {
  static constexpr std::size_t capacity = 48;
  std::size_t count = 0;
  std::array<std::array<void*, capacity>, streams> data{};
  std::array<std::int64_t, capacity> sizes{};
  std::array<std::int64_t, capacity + 1> first_block{};  ///< of each tensor, and of all
  std::int64_t blocks() const { return first_block[count]; }
};

/// A number on the device, as float32 or float64; without either 1.
struct DeviceNumber {
  const float* single = nullptr;
  const double* wide = nullptr;
};

/// C: double for double, else float.
template <class C>
struct AdamWStep {
  double gradient_sign;  ///< -1 to maximize
  C shrink, take1, keep2, take2, step_size, correction2, eps;
};
template <class C>
struct SgdStep {
  double gradient_sign;
  C decay, lr, keep, take, ahead, direct;  ///< buffer: keep, take; step: direct g + ahead buffer
};

/// Streams: parameters (T), masters (C; of T = C the parameters), gradients (T), both averages (C).
template <class T, class C>
void adamw(const TensorBatch<5>& batch, const DeviceNumber& grad_scale, const AdamWStep<C>& step,
           void* stream);
/// Streams: parameters, masters, gradients, momentum buffers (C, or null).
template <class T, class C>
void sgd(const TensorBatch<4>& batch, const DeviceNumber& grad_scale, const SgdStep<C>& step,
         void* stream);
/// sums [blocks of the batch]: of the squares of each chunk, in double, so that no gradient short
/// of infinity overflows.
template <class T>
void sums_of_squares(const TensorBatch<1>& batch, double* sums, void* stream);
/// Everything times min(1, max_norm / (norm + 1e-6)); NaN spreads.
template <class T>
void clip_scale(const TensorBatch<1>& batch, const DeviceNumber& norm, double max_norm,
                void* stream);
/// Streams: averages (C) = keep averages + take parameters (T).
template <class T, class C>
void ema(const TensorBatch<2>& batch, C keep, C take, void* stream);

}  // namespace norma::cuda_kernels
