#include "norma/cuda/kernels/attention.h"

#include "norma/core/factory.h"
#include "norma/cuda/runtime/backend.h"
#include "norma/cuda/runtime/pointers.h"

namespace norma::cuda_kernels {

namespace {

/// Elements of T, or of const T for what is only read; null for an undefined tensor.
template <class T>
Heads<T> heads_of(const Tensor& x) {
  if (!x.defined()) return {};
  return {x.data<std::remove_const_t<T>>(), x.stride(0), x.stride(1), x.stride(2)};
}

template <class T>
Attention<T> arguments_of(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                          const Tensor& key_padding_mask, const AttentionParams& params) {
  Attention<T> a{.batch = q.size(0),
                 .heads = q.size(1),
                 .kv_heads = k.size(1),
                 .queries = q.size(2),
                 .keys = k.size(2),
                 .width = q.size(3),
                 .value_width = v.size(3),
                 .q = heads_of<const T>(q),
                 .k = heads_of<const T>(k),
                 .v = heads_of<const T>(v),
                 .mask = pointer<T>(mask),
                 .mask_strides = {},
                 .padding = pointer<bool>(key_padding_mask),
                 .scale = params.scale,
                 .softcap = params.softcap,
                 .dropout_p = params.dropout_p,
                 .causal = params.causal,
                 .philox = params.philox};
  if (mask.defined())
    for (std::int64_t d = 0; d < 4; ++d) a.mask_strides[d] = mask.stride(d);
  return a;
}

void run_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                   const Tensor& key_padding_mask, const AttentionParams& params, const Tensor& out,
                   const Tensor& logsumexp) {
  visit_floating(q.dtype(), "scaled_dot_product_attention", [&]<class T>(TypeTag<T>) {
    attention<T>(arguments_of<T>(q, k, v, mask, key_padding_mask, params), heads_of<T>(out),
                 logsumexp.data<accumulate_t<T>>(), nullptr);
  });
}

void run_attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                            const Tensor& key_padding_mask, const AttentionParams& params,
                            const Tensor& out, const Tensor& logsumexp, const Tensor& dout,
                            const Tensor& dq, const Tensor& dk, const Tensor& dv) {
  const Tensor delta =
      empty(logsumexp.shape(), {.dtype = logsumexp.dtype(), .device = logsumexp.device()});
  visit_floating(q.dtype(), "scaled_dot_product_attention", [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    attention_backward<T>(arguments_of<T>(q, k, v, mask, key_padding_mask, params),
                          {.out = heads_of<const T>(out),
                           .dout = heads_of<const T>(dout),
                           .logsumexp = logsumexp.data<C>(),
                           .delta = delta.data<C>(),
                           .dq = heads_of<T>(dq),
                           .dk = heads_of<T>(dk),
                           .dv = heads_of<T>(dv)},
                          nullptr);
  });
}

}  // namespace

void add_attention_kernels(Backend& table) {
  table.attention = run_attention;
  table.attention_backward = run_attention_backward;
}

}  // namespace norma::cuda_kernels
