// Attention on the device, without a matrix of scores (ops/backend.h).
#pragma once

#include "norma/core/philox.h"
#include "norma/cuda/device.cuh"

#include <cstdint>

namespace norma::cuda_kernels {

/// A tensor [batch, heads, length, width] with adjacent columns; null where there is none.
template <class T>
struct Heads {
  T* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0;  ///< strides
  __device__ __forceinline__ T* at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return data + b * batch + h * head + i * row;
  }
};

/// Queries [batch, heads, queries, width] over keys [batch, kv_heads, keys, width] and values
/// [batch, kv_heads, keys, value_width].
template <class T>
struct Attention {
  std::int64_t batch, heads, kv_heads, queries, keys, width, value_width;
  Heads<const T> q, k, v;
  const T* mask;  ///< added to the scores, with strides for [batch, heads, queries, keys]; or null
  std::int64_t mask_strides[4];
  const bool* padding;  ///< [batch, keys], true = ignore this key; or null
  double scale, softcap, dropout_p;
  bool causal;
  PhiloxState philox;
};

/// logsumexp [batch, heads, queries], of the scores of each query; -inf where it sees no key.
template <class T>
void attention(const Attention<T>& a, const Heads<T>& out, device::accumulate_t<T>* logsumexp,
               void* stream);

/// Gradients without data are not made. delta [batch, heads, queries] is working memory.
template <class T>
struct AttentionGradients {
  Heads<const T> out, dout;
  const device::accumulate_t<T>* logsumexp;
  device::accumulate_t<T>* delta;
  Heads<T> dq, dk, dv;
};
template <class T>
void attention_backward(const Attention<T>& a, const AttentionGradients<T>& gradients,
                        void* stream);

}  // namespace norma::cuda_kernels
