#include "norma/cuda/kernels/optimizer.h"

#include "norma/core/factory.h"
#include "norma/core/required_ops.h"
#include "norma/cuda/kernels/elementwise_unary.h"
#include "norma/cuda/kernels/reduction.h"
#include "norma/cuda/runtime/backend.h"

#include <cmath>

namespace norma::cuda_kernels {

namespace {

template <std::size_t streams>
using Lists = std::array<const TensorList*, streams>;

/// Calls launch(TypeTag<T>{}, batch) for runs of tensors, with T the dtype of `typed`'s. Streams of
/// an empty list are null.
template <std::size_t streams, class Launch>
void for_each_batch(const char* name, const Lists<streams>& lists, const TensorList& typed,
                    const Launch& launch) {
  TensorBatch<streams> batch;
  const auto flush = [&](DType dtype) {
    if (batch.count > 0)
      visit_floating(dtype, name, [&]<class T>(TypeTag<T> tag) { launch(tag, batch); });
    batch.count = 0;
  };
  for (std::size_t k = 0; k < typed.size(); ++k) {
    const DType dtype = typed[k].dtype();
    if (k > 0 && (typed[k - 1].dtype() != dtype || batch.count == batch.capacity))
      flush(typed[k - 1].dtype());
    for (std::size_t s = 0; s < streams; ++s)
      batch.data[s][batch.count] = lists[s]->empty() ? nullptr : (*lists[s])[k].raw_data();
    batch.sizes[batch.count] = typed[k].numel();
    batch.first_block[batch.count + 1] =
        batch.first_block[batch.count] + (typed[k].numel() + optimizer_chunk - 1) / optimizer_chunk;
    ++batch.count;
  }
  if (!typed.empty()) flush(typed.back().dtype());
}

DeviceNumber number_of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return tensor.dtype() == float64 ? DeviceNumber{.wide = tensor.data<double>()}
                                   : DeviceNumber{.single = tensor.data<float>()};
}

void run_adamw(const TensorList& params, const TensorList& masters, const TensorList& grads,
               const TensorList& exp_avg, const TensorList& exp_avg_sq, const Tensor& grad_scale,
               const AdamWParams& p) {
  const double count = static_cast<double>(p.step);
  const Lists<5> lists{&params, &masters, &grads, &exp_avg, &exp_avg_sq};
  for_each_batch("adamw", lists, params, [&]<class T>(TypeTag<T>, const TensorBatch<5>& batch) {
    using C = accumulate_t<T>;
    const AdamWStep<C> step{
        .gradient_sign = p.maximize ? -1.0 : 1.0,
        .shrink = static_cast<C>(1.0 - p.lr * p.weight_decay),
        .take1 = static_cast<C>(1.0 - p.beta1),
        .keep2 = static_cast<C>(p.beta2),
        .take2 = static_cast<C>(1.0 - p.beta2),
        .step_size = static_cast<C>(p.lr / (1.0 - std::pow(p.beta1, count))),
        .correction2 = static_cast<C>(std::sqrt(1.0 - std::pow(p.beta2, count))),
        .eps = static_cast<C>(p.eps)};
    adamw<T, C>(batch, number_of(grad_scale), step, nullptr);
  });
}

void run_sgd(const TensorList& params, const TensorList& masters, const TensorList& grads,
             const TensorList& buffers, const Tensor& grad_scale, const SgdParams& p) {
  const Lists<4> lists{&params, &masters, &grads, &buffers};
  for_each_batch("sgd", lists, params, [&]<class T>(TypeTag<T>, const TensorBatch<4>& batch) {
    using C = accumulate_t<T>;
    // The first gradient fills the buffer as it is, without dampening.
    const SgdStep<C> step{.gradient_sign = p.maximize ? -1.0 : 1.0,
                          .decay = static_cast<C>(p.weight_decay),
                          .lr = static_cast<C>(p.lr),
                          .keep = static_cast<C>(p.first_step ? 0.0 : p.momentum),
                          .take = static_cast<C>(p.first_step ? 1.0 : 1.0 - p.dampening),
                          .ahead = static_cast<C>(p.nesterov ? p.momentum : 1.0),
                          .direct = static_cast<C>(p.nesterov ? 1.0 : 0.0)};
    sgd<T, C>(batch, number_of(grad_scale), step, nullptr);
  });
}

void run_global_norm(const TensorList& tensors, const Tensor& out) {
  std::int64_t chunks = 0;
  for (const Tensor& tensor : tensors)
    chunks += (tensor.numel() + optimizer_chunk - 1) / optimizer_chunk;
  const ReduceShape shape{1, chunks, 1};
  const TensorOptions options{.dtype = float64, .device = out.device()};
  const Tensor sums = empty({chunks}, options), total = empty({1}, options);
  const Tensor workspace = empty({workspace_elements(shape)}, options);
  double* next = sums.data<double>();
  for_each_batch("global_norm", Lists<1>{&tensors}, tensors,
                 [&]<class T>(TypeTag<T>, const TensorBatch<1>& batch) {
                   sums_of_squares<T>(batch, next, nullptr);
                   next += batch.blocks();
                 });
  double* const sum = total.data<double>();
  reduce<double, double, double>(ReduceOp::sum, shape, sums.data<double>(),
                                 workspace.data<double>(), sum, nullptr);
  unary<double>(UnaryOp::sqrt, sum, 1, sum, nullptr);
  out.copy_(total.view(out.shape()));
}

void run_clip_scale(const TensorList& tensors, const Tensor& norm, double max_norm) {
  for_each_batch("clip_scale", Lists<1>{&tensors}, tensors,
                 [&]<class T>(TypeTag<T>, const TensorBatch<1>& batch) {
                   clip_scale<T>(batch, number_of(norm), max_norm, nullptr);
                 });
}

void run_ema(const TensorList& averages, const TensorList& params, double decay) {
  const Lists<2> lists{&averages, &params};
  for_each_batch("ema", lists, params, [&]<class T>(TypeTag<T>, const TensorBatch<2>& batch) {
    using C = accumulate_t<T>;
    ema<T, C>(batch, static_cast<C>(decay), static_cast<C>(1.0 - decay), nullptr);
  });
}

}  // namespace

void add_optimizer_kernels(Backend& table) {
  table.adamw = run_adamw;
  table.sgd = run_sgd;
  table.global_norm = run_global_norm;
  table.clip_scale = run_clip_scale;
  table.ema = run_ema;
}

}  // namespace norma::cuda_kernels
