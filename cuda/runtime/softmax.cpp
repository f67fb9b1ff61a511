#include "norma/cuda/kernels/softmax.h"

#include "norma/cuda/runtime/backend.h"
#include "norma/cuda/runtime/pointers.h"

namespace norma::cuda_kernels {

namespace {

void softmax_forward(const Tensor& x, bool log, const Tensor& out) {
  visit_floating(x.dtype(), "softmax", [&]<class T>(TypeTag<T>) {
    softmax<T>(x.data<T>(), x.size(0), x.size(1), log, out.data<T>(), nullptr);
  });
}

void softmax_gradient(const Tensor& y, const Tensor& dy, bool log, const Tensor& dx) {
  visit_floating(y.dtype(), "softmax_backward", [&]<class T>(TypeTag<T>) {
    softmax_backward<T>(y.data<T>(), dy.data<T>(), y.size(0), y.size(1), log, dx.data<T>(),
                        nullptr);
  });
}

template <class T>
CrossEntropy<T> arguments_of(const Tensor& logits, const Tensor& target, const Tensor& weight,
                             std::int64_t ignore_index, double label_smoothing) {
  return {.rows = logits.size(0),
          .classes = logits.size(1),
          .logits = logits.data<T>(),
          .target = target.data<std::int64_t>(),
          .weight = pointer<T>(weight),
          .ignore_index = ignore_index,
          .label_smoothing = label_smoothing};
}

void loss_forward(const Tensor& logits, const Tensor& target, const Tensor& weight,
                  std::int64_t ignore_index, double label_smoothing, const Tensor& loss,
                  const Tensor& logsumexp) {
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>(TypeTag<T>) {
    using C = statistic_t<T>;
    cross_entropy(arguments_of<T>(logits, target, weight, ignore_index, label_smoothing),
                  loss.data<C>(), logsumexp.data<C>(), nullptr);
  });
}

void loss_gradient(const Tensor& logits, const Tensor& target, const Tensor& weight,
                   std::int64_t ignore_index, double label_smoothing, const Tensor& logsumexp,
                   const Tensor& dloss, const Tensor& dlogits) {
  visit_floating(logits.dtype(), "cross_entropy_backward", [&]<class T>(TypeTag<T>) {
    using C = statistic_t<T>;
    cross_entropy_backward(arguments_of<T>(logits, target, weight, ignore_index, label_smoothing),
                           logsumexp.data<C>(), dloss.data<C>(), dlogits.data<T>(), nullptr);
  });
}

void moments(const Tensor& x, std::int64_t outer, std::int64_t reduced, std::int64_t inner,
             const Tensor& mean, const Tensor& variance) {
  visit_floating(x.dtype(), "mean_variance", [&]<class T>(TypeTag<T>) {
    using C = statistic_t<T>;
    mean_variance<T>(x.data<T>(), outer, reduced, inner, mean.data<C>(), variance.data<C>(),
                     nullptr);
  });
}

}  // namespace

void add_softmax_kernels(Backend& table) {
  table.softmax = softmax_forward;
  table.softmax_backward = softmax_gradient;
  table.cross_entropy = loss_forward;
  table.cross_entropy_backward = loss_gradient;
  table.mean_variance = moments;
}

}  // namespace norma::cuda_kernels
