#include "norma/cuda/kernels/optimizer.h"

#include "norma/cuda/kernels/element.cuh"
#include "norma/cuda/kernels/math.cuh"
#include "norma/cuda/kernels/reduce.cuh"

namespace norma::cuda_kernels {

namespace {

constexpr int threads = 256;

/// Calls use(tensor, i) for this thread's share of the block's chunk: element i of a tensor.
template <std::size_t streams, class Use>
__device__ __forceinline__ void for_each_in_chunk(const TensorBatch<streams>& batch,
                                                  const Use& use) {
  std::size_t tensor = 0;
  while (blockIdx.x >= batch.first_block[tensor + 1]) ++tensor;
  const std::int64_t begin = (blockIdx.x - batch.first_block[tensor]) * optimizer_chunk;
  const std::int64_t end =
      begin + optimizer_chunk < batch.sizes[tensor] ? begin + optimizer_chunk : batch.sizes[tensor];
  for (std::int64_t i = begin + threadIdx.x; i < end; i += threads) use(tensor, i);
}

__device__ __forceinline__ double value_of(const DeviceNumber& number) {
  if (number.wide != nullptr) return *number.wide;
  return number.single != nullptr ? static_cast<double>(*number.single) : 1.0;
}

/// Parameters are updated in C, the type of their masters; 16-bit ones get the rounded result.
template <class T, class C>
__device__ __forceinline__ void store_parameter([[maybe_unused]] void* parameters, C* masters,
                                                std::int64_t i, C value) {
  masters[i] = value;
  if constexpr (!std::is_same_v<T, C>) static_cast<T*>(parameters)[i] = element<T>(value);
}

template <class T, class C>
__global__ void __launch_bounds__(threads)
    adamw_kernel(TensorBatch<5> batch, DeviceNumber grad_scale, AdamWStep<C> p) {
  const C scale = static_cast<C>(p.gradient_sign * value_of(grad_scale));
  for_each_in_chunk(batch, [&](std::size_t tensor, std::int64_t i) {
    C* const masters = static_cast<C*>(batch.data[1][tensor]);
    C* const exp_avg = static_cast<C*>(batch.data[3][tensor]);
    C* const exp_avg_sq = static_cast<C*>(batch.data[4][tensor]);
    const C g = element<C>(static_cast<const T*>(batch.data[2][tensor])[i]) * scale;
    const C m = exp_avg[i] + p.take1 * (g - exp_avg[i]);
    const C v = p.keep2 * exp_avg_sq[i] + p.take2 * g * g;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    const C denominator = DeviceMath::sqrt(v) / p.correction2 + p.eps;
    store_parameter<T>(batch.data[0][tensor], masters, i,
                       masters[i] * p.shrink - p.step_size * (m / denominator));
  });
}

template <class T, class C>
__global__ void __launch_bounds__(threads)
    sgd_kernel(TensorBatch<4> batch, DeviceNumber grad_scale, SgdStep<C> p) {
  const C scale = static_cast<C>(p.gradient_sign * value_of(grad_scale));
  for_each_in_chunk(batch, [&](std::size_t tensor, std::int64_t i) {
    C* const masters = static_cast<C*>(batch.data[1][tensor]);
    C* const buffer = static_cast<C*>(batch.data[3][tensor]);
    const C g =
        element<C>(static_cast<const T*>(batch.data[2][tensor])[i]) * scale + p.decay * masters[i];
    C direction = g;
    if (buffer != nullptr) {
      const C b = p.keep * buffer[i] + p.take * g;
      buffer[i] = b;
      direction = p.direct * g + p.ahead * b;
    }
    store_parameter<T>(batch.data[0][tensor], masters, i, masters[i] - p.lr * direction);
  });
}

template <class T>
__global__ void __launch_bounds__(threads)
    sums_of_squares_kernel(TensorBatch<1> batch, double* sums) {
  using Sum = GroupSum<threads, double>;
  NORMA_SHARED(double, scratch, Sum::scratch_count);
  Sum sum(scratch);
  double total = 0;
  for_each_in_chunk(batch, [&](std::size_t tensor, std::int64_t i) {
    const double value =
        static_cast<double>(element<compute_t<T>>(static_cast<T*>(batch.data[0][tensor])[i]));
    total += value * value;
  });
  total = sum(total);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

template <class T>
__global__ void __launch_bounds__(threads)
    clip_scale_kernel(TensorBatch<1> batch, DeviceNumber norm, double max_norm) {
  using C = compute_t<T>;
  const double factor = max_norm / (value_of(norm) + 1e-6);
  if (factor >= 1.0) return;  // false for NaN, which shall spread as it does in PyTorch
  for_each_in_chunk(batch, [&](std::size_t tensor, std::int64_t i) {
    T& value = static_cast<T*>(batch.data[0][tensor])[i];
    value = element<T>(element<C>(value) * static_cast<C>(factor));
  });
}

template <class T, class C>
__global__ void __launch_bounds__(threads) ema_kernel(TensorBatch<2> batch, C keep, C take) {
  for_each_in_chunk(batch, [&](std::size_t tensor, std::int64_t i) {
    C& average = static_cast<C*>(batch.data[0][tensor])[i];
    average = keep * average + take * element<C>(static_cast<const T*>(batch.data[1][tensor])[i]);
  });
}

template <std::size_t streams>
device::LaunchConfig config_of(const char* name, const TensorBatch<streams>& batch, void* stream) {
  return {.name = name,
          .grid = {static_cast<unsigned>(batch.blocks())},
          .block = {threads},
          .stream = stream};
}

}  // namespace

template <class T, class C>
void adamw(const TensorBatch<5>& batch, const DeviceNumber& grad_scale, const AdamWStep<C>& step,
           void* stream) {
  if (batch.blocks() > 0)
    device::launch(config_of("adamw", batch, stream), adamw_kernel<T, C>, batch, grad_scale, step);
}
template <class T, class C>
void sgd(const TensorBatch<4>& batch, const DeviceNumber& grad_scale, const SgdStep<C>& step,
         void* stream) {
  if (batch.blocks() > 0)
    device::launch(config_of("sgd", batch, stream), sgd_kernel<T, C>, batch, grad_scale, step);
}
template <class T>
void sums_of_squares(const TensorBatch<1>& batch, double* sums, void* stream) {
  if (batch.blocks() > 0)
    device::launch(config_of("sums_of_squares", batch, stream), sums_of_squares_kernel<T>, batch,
                   sums);
}
template <class T>
void clip_scale(const TensorBatch<1>& batch, const DeviceNumber& norm, double max_norm,
                void* stream) {
  if (batch.blocks() > 0)
    device::launch(config_of("clip_scale", batch, stream), clip_scale_kernel<T>, batch, norm,
                   max_norm);
}
template <class T, class C>
void ema(const TensorBatch<2>& batch, C keep, C take, void* stream) {
  if (batch.blocks() > 0)
    device::launch(config_of("ema", batch, stream), ema_kernel<T, C>, batch, keep, take);
}

#define NORMA_OPTIMIZER(T)                                                                \
  template void adamw<T, compute_t<T>>(const TensorBatch<5>&, const DeviceNumber&,        \
                                       const AdamWStep<compute_t<T>>&, void*);            \
  template void sgd<T, compute_t<T>>(const TensorBatch<4>&, const DeviceNumber&,          \
                                     const SgdStep<compute_t<T>>&, void*);                \
  template void sums_of_squares<T>(const TensorBatch<1>&, double*, void*);                \
  template void clip_scale<T>(const TensorBatch<1>&, const DeviceNumber&, double, void*); \
  template void ema<T, compute_t<T>>(const TensorBatch<2>&, compute_t<T>, compute_t<T>, void*);
NORMA_FOR_FLOATING_TYPES(NORMA_OPTIMIZER)

}  // namespace norma::cuda_kernels
