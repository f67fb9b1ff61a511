// Optimizer steps: one pass over all tensors of a list, so that each value is read and written
// once.
#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"

#include <cmath>
#include <vector>

namespace norma::cpu_kernels {

namespace {

constexpr std::int64_t chunk_size =
    16384;  // 64 KiB of float32: a chunk of AdamW's five streams stays in L2

/// A piece of one tensor of a list. Their order depends on sizes alone.
struct Chunk {
  std::size_t tensor;
  std::int64_t begin;
  std::int64_t end;
};

std::vector<Chunk> split(const TensorList& tensors) {
  std::vector<Chunk> chunks;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t count = tensors[i].numel();
    for (std::int64_t begin = 0; begin < count; begin += chunk_size)
      chunks.push_back({i, begin, std::min(begin + chunk_size, count)});
  }
  return chunks;
}

/// Calls body(index, chunk) for all chunks on all threads. Small tensors share a thread: the grain
/// counts elements.
template <class Body>
void for_chunks(const std::vector<Chunk>& chunks, const Body& body) {
  std::int64_t elements = 0;
  for (const Chunk& chunk : chunks) elements += chunk.end - chunk.begin;
  const auto count = static_cast<std::int64_t>(chunks.size());
  const std::int64_t cost = count > 0 ? elements / count : 0;
  parallel_for(count, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      body(static_cast<std::size_t>(i), chunks[static_cast<std::size_t>(i)]);
  });
}

double scale_of(const Tensor& scale) {
  if (!scale.defined()) return 1.0;
  return scale.dtype() == float64 ? *scale.data<double>()
                                  : static_cast<double>(*scale.data<float>());
}

// Parameters are updated in A, the type of their masters; 16-bit ones receive the rounded result.
template <class T, class A>
void store_parameter([[maybe_unused]] T* parameter, A* master, std::int64_t i, A value) {
  master[i] = value;
  if constexpr (!std::is_same_v<T, A>) parameter[i] = static_cast<T>(value);
}

template <class T>
void adamw_chunk(T* __restrict parameter, accumulate_t<T>* master, const T* __restrict grad,
                 accumulate_t<T>* __restrict exp_avg, accumulate_t<T>* __restrict exp_avg_sq,
                 std::int64_t count, double grad_scale, const AdamWParams& p) {
  using A = accumulate_t<T>;
  const double step = static_cast<double>(p.step);
  const A scale = static_cast<A>(p.maximize ? -grad_scale : grad_scale);
  const A shrink = static_cast<A>(1.0 - p.lr * p.weight_decay);
  const A take1 = static_cast<A>(1.0 - p.beta1);
  const A keep2 = static_cast<A>(p.beta2);
  const A take2 = static_cast<A>(1.0 - p.beta2);
  const A step_size = static_cast<A>(p.lr / (1.0 - std::pow(p.beta1, step)));
  const A correction2 = static_cast<A>(std::sqrt(1.0 - std::pow(p.beta2, step)));
  const A eps = static_cast<A>(p.eps);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const A g = static_cast<A>(grad[i]) * scale;
    const A m = exp_avg[i] + take1 * (g - exp_avg[i]);
    const A v = keep2 * exp_avg_sq[i] + take2 * g * g;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    const A denominator = std::sqrt(v) / correction2 + eps;
    store_parameter(parameter, master, i, master[i] * shrink - step_size * (m / denominator));
  }
}

void adamw(const TensorList& params, const TensorList& masters, const TensorList& grads,
           const TensorList& exp_avg, const TensorList& exp_avg_sq, const Tensor& grad_scale,
           const AdamWParams& p) {
  const double scale = scale_of(grad_scale);
  for_chunks(split(params), [&](std::size_t, const Chunk& chunk) {
    const std::size_t k = chunk.tensor;
    visit_floating(params[k].dtype(), "adamw", [&]<class T>(TypeTag<T>) {
      using A = accumulate_t<T>;
      adamw_chunk<T>(params[k].data<T>() + chunk.begin, masters[k].data<A>() + chunk.begin,
                     grads[k].data<T>() + chunk.begin, exp_avg[k].data<A>() + chunk.begin,
                     exp_avg_sq[k].data<A>() + chunk.begin, chunk.end - chunk.begin, scale, p);
    });
  });
}

template <class T>
void sgd_chunk(T* __restrict parameter, accumulate_t<T>* master, const T* __restrict grad,
               accumulate_t<T>* __restrict buffer, std::int64_t count, double grad_scale,
               const SgdParams& p) {
  using A = accumulate_t<T>;
  const A scale = static_cast<A>(p.maximize ? -grad_scale : grad_scale);
  const A decay = static_cast<A>(p.weight_decay);
  const A lr = static_cast<A>(p.lr);
  if (buffer == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const A g = static_cast<A>(grad[i]) * scale + decay * master[i];
      store_parameter(parameter, master, i, master[i] - lr * g);
    }
    return;
  }
  // The first gradient fills the buffer as it is, without dampening.
  const A keep = static_cast<A>(p.first_step ? 0.0 : p.momentum);
  const A take = static_cast<A>(p.first_step ? 1.0 : 1.0 - p.dampening);
  const A ahead = static_cast<A>(p.nesterov ? p.momentum : 1.0);
  const A direct = static_cast<A>(p.nesterov ? 1.0 : 0.0);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const A g = static_cast<A>(grad[i]) * scale + decay * master[i];
    const A b = keep * buffer[i] + take * g;
    buffer[i] = b;
    store_parameter(parameter, master, i, master[i] - lr * (direct * g + ahead * b));
  }
}

void sgd(const TensorList& params, const TensorList& masters, const TensorList& grads,
         const TensorList& buffers, const Tensor& grad_scale, const SgdParams& p) {
  const double scale = scale_of(grad_scale);
  for_chunks(split(params), [&](std::size_t, const Chunk& chunk) {
    const std::size_t k = chunk.tensor;
    visit_floating(params[k].dtype(), "sgd", [&]<class T>(TypeTag<T>) {
      using A = accumulate_t<T>;
      A* buffer = buffers.empty() ? nullptr : buffers[k].data<A>() + chunk.begin;
      sgd_chunk<T>(params[k].data<T>() + chunk.begin, masters[k].data<A>() + chunk.begin,
                   grads[k].data<T>() + chunk.begin, buffer, chunk.end - chunk.begin, scale, p);
    });
  });
}

/// In double, so that no gradient short of infinity overflows.
template <class T>
double sum_of_squares(const T* values, std::int64_t count) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(static_cast<accumulate_t<T>>(values[i]));
    sum += value * value;
  }
  return sum;
}

void global_norm(const TensorList& tensors, const Tensor& out) {
  const std::vector<Chunk> chunks = split(tensors);
  std::vector<double> sums(chunks.size());
  for_chunks(chunks, [&](std::size_t index, const Chunk& chunk) {
    const Tensor& tensor = tensors[chunk.tensor];
    sums[index] = visit_floating(tensor.dtype(), "global_norm", [&]<class T>(TypeTag<T>) {
      return sum_of_squares(tensor.data<T>() + chunk.begin, chunk.end - chunk.begin);
    });
  });
  double total = 0.0;
  for (const double sum : sums) total += sum;
  if (out.dtype() == float64)
    *out.data<double>() = std::sqrt(total);
  else
    *out.data<float>() = static_cast<float>(std::sqrt(total));
}

void clip_scale(const TensorList& tensors, const Tensor& norm, double max_norm) {
  const double factor = max_norm / (scale_of(norm) + 1e-6);
  if (factor >= 1.0) return;  // false for NaN, which shall spread as it does in PyTorch
  for_chunks(split(tensors), [&](std::size_t, const Chunk& chunk) {
    const Tensor& tensor = tensors[chunk.tensor];
    visit_floating(tensor.dtype(), "clip_scale", [&]<class T>(TypeTag<T>) {
      T* values = tensor.data<T>();
      const auto by = static_cast<accumulate_t<T>>(factor);
#pragma omp simd
      for (std::int64_t i = chunk.begin; i < chunk.end; ++i)
        values[i] = static_cast<T>(static_cast<accumulate_t<T>>(values[i]) * by);
    });
  });
}

void ema(const TensorList& averages, const TensorList& params, double decay) {
  for_chunks(split(averages), [&](std::size_t, const Chunk& chunk) {
    const Tensor& parameter = params[chunk.tensor];
    visit_floating(parameter.dtype(), "ema", [&]<class T>(TypeTag<T>) {
      using A = accumulate_t<T>;
      A* __restrict average = averages[chunk.tensor].data<A>();
      const T* __restrict value = parameter.data<T>();
      const A keep = static_cast<A>(decay);
      const A take = static_cast<A>(1.0 - decay);
#pragma omp simd
      for (std::int64_t i = chunk.begin; i < chunk.end; ++i)
        average[i] = keep * average[i] + take * static_cast<A>(value[i]);
    });
  });
}

}  // namespace

void add_optimizer_kernels(Backend& table) {
  table.adamw = adamw;
  table.sgd = sgd;
  table.global_norm = global_norm;
  table.clip_scale = clip_scale;
  table.ema = ema;
}

}  // namespace norma::cpu_kernels
