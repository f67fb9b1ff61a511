// Softmax and cross entropy of rows, and their means and variances, on the device (ops/backend.h).
#pragma once

#include "norma/cuda/kernels/row_norm.h"

namespace norma::cuda_kernels {

/// Of rows [rows, width].
template <class T>
void softmax(const T* x, std::int64_t rows, std::int64_t width, bool log, T* out, void* stream);
template <class T>
void softmax_backward(const T* y, const T* dy, std::int64_t rows, std::int64_t width, bool log,
                      T* dx, void* stream);

/// logits [rows, classes], target [rows], weight [classes] or null.
template <class T>
struct CrossEntropy {
  std::int64_t rows, classes;
  const T* logits;
  const std::int64_t* target;
  const T* weight;
  std::int64_t ignore_index;
  double label_smoothing;
};
template <class T>
void cross_entropy(const CrossEntropy<T>& arguments, statistic_t<T>* loss,
                   statistic_t<T>* logsumexp, void* stream);
template <class T>
void cross_entropy_backward(const CrossEntropy<T>& arguments, const statistic_t<T>* logsumexp,
                            const statistic_t<T>* dloss, T* dlogits, void* stream);

/// Over the middle of [outer, reduced, inner]; variance biased.
template <class T>
void mean_variance(const T* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner,
                   statistic_t<T>* mean, statistic_t<T>* variance, void* stream);

}  // namespace norma::cuda_kernels
