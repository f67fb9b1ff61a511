// CPU kernels of attention: a loop over heads and blocks of queries; the scores of a block are made
// by the matrix product library in a tile that fits the cache, and never leave it.
#include "norma/core/factory.h"
#include "norma/core/required_ops.h"
#include "norma/core/tensor_impl.h"
#include "norma/ops/cpu/attention_tile.h"
#include "norma/ops/cpu/gemm.h"
#include "norma/ops/cpu/kernels.h"
#include "norma/ops/cpu/parallel.h"
#include "norma/ops/cpu/vec_math.h"

#include <cmath>
#include <limits>

namespace norma::cpu_kernels {

template <class T>
ScoreBias<T>::ScoreBias(const AttentionSizes& sizes, const Tensor& mask,
                        const Tensor& key_padding_mask)
    : key_count_(sizes.keys),
      ranges_(static_cast<std::size_t>(sizes.batch), KeyRange{0, sizes.keys, false}) {
  if (mask.defined()) {
    mask_ = mask.data<T>();
    mask_strides_ = mask.strides();
  }
  if (!key_padding_mask.defined()) return;
  const bool* const ignored = key_padding_mask.data<bool>();
  bool holes = false;
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    const bool* const row = ignored + b * key_count_;
    KeyRange& range = ranges_[static_cast<std::size_t>(b)];
    while (range.first < range.last && row[range.first]) ++range.first;
    while (range.last > range.first && row[range.last - 1]) --range.last;
    range.holes = std::find(row + range.first, row + range.last, true) != row + range.last;
    holes = holes || range.holes;
  }
  if (!holes) return;
  padding_.resize(static_cast<std::size_t>(sizes.batch * key_count_));
  for (std::size_t i = 0; i < padding_.size(); ++i)
    padding_[i] = ignored[i] ? -std::numeric_limits<T>::infinity() : T{0};
}

template <class T>
const T* ScoreBias<T>::row(std::int64_t b, std::int64_t h, std::int64_t i, T* buffer) const {
  const KeyRange& range = keys(b);
  const T* const padding = range.holes ? padding_.data() + b * key_count_ + range.first : nullptr;
  if (mask_ == nullptr) return padding;
  const std::int64_t step = mask_strides_[3];
  const T* const mask = mask_ + b * mask_strides_[0] + h * mask_strides_[1] + i * mask_strides_[2] +
                        range.first * step;
  if (padding == nullptr && step == 1) return mask;
  for (std::int64_t j = 0; j < range.last - range.first; ++j)
    buffer[j] = mask[j * step] + (padding != nullptr ? padding[j] : T{0});
  return buffer;
}

namespace {

/// Per-thread memory of a kernel: score tiles and rows.
template <class T>
class Scratch {
 public:
  Scratch(std::int64_t elements)
      : memory_(empty({elements}, {.dtype = dtype_of<T>})), next_(memory_.data<T>()) {}
  T* take(std::int64_t elements) { return std::exchange(next_, next_ + elements); }

 private:
  Tensor memory_;
  T* next_;
};

/// Scores of one row to weights without their divisor: caps and biases them, then e^(score -
/// largest), in place. Gives the log-sum-exp, and through `sum` the divisor; -inf and 0 where the
/// row sees no key.
template <bool capped, bool biased, class T>
T softmax_row(T* scores, std::int64_t count, T cap, const T* bias, T& sum) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const T inverse_cap = capped ? T{1} / cap : T{0};
  T largest = -infinity;
#pragma omp simd reduction(max : largest)
  for (std::int64_t j = 0; j < count; ++j) {
    T s = scores[j];
    if constexpr (capped) s = cap * VecMath::tanh(s * inverse_cap);
    if constexpr (biased) s += bias[j];
    if constexpr (capped || biased) scores[j] = s;
    largest = s > largest ? s : largest;
  }
  sum = T{0};
  if (largest == -infinity) {
    // Nothing to see, or only NaN, which must not vanish.
    bool all_masked = true;
    for (std::int64_t j = 0; j < count; ++j) all_masked = all_masked && scores[j] == -infinity;
    if (all_masked) {
      std::fill(scores, scores + count, T{0});
      return -infinity;
    }
  }
  T total = T{0};
#pragma omp simd reduction(+ : total)
  for (std::int64_t j = 0; j < count; ++j) {
    const T p = VecMath::exp_nonpositive(scores[j] - largest);
    scores[j] = p;
    total += p;
  }
  sum = total;
  return largest + std::log(total);
}

template <class T>
void attention_typed(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                     const Tensor& key_padding_mask, const AttentionParams& params,
                     const Tensor& out, const Tensor& logsumexp) {
  const AttentionSizes n(q, k, v);
  const Heads<T> hq(q), hk(k), hv(v), ho(out);
  const ScoreBias<T> bias(n, mask, key_padding_mask);
  T* const lse = logsumexp.data<T>();
  const std::int64_t block = std::min(n.queries, query_block(n, params.causal, 1, sizeof(T)));
  const std::int64_t blocks = (n.queries + block - 1) / block;
  const T cap = static_cast<T>(params.softcap), scale = static_cast<T>(params.scale);

  const auto run = [&](std::int64_t begin, std::int64_t end) {
    Scratch<T> scratch((block + 2) * n.keys);
    T* const tile = scratch.take(block * n.keys);
    T* const bias_row = scratch.take(n.keys);
    T* const keep = scratch.take(n.keys);
    std::vector<T> divisor(static_cast<std::size_t>(block));
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t b = item / (n.heads * blocks), h = item / blocks % n.heads;
      const std::int64_t first = item % blocks * block, last = std::min(first + block, n.queries);
      const KeyRange& range = bias.keys(b);
      const std::int64_t rows = last - first;
      const std::int64_t count = visible_end(range, params, last - 1) - range.first;
      const std::int64_t ld = std::max<std::int64_t>(count, 1);
      gemm(rows, count, n.width, scale, Matrix<T>{hq.at(b, h, first), hq.row},
           Matrix<T>{hk.at(b, h / n.group(), range.first), hk.row, true}, T{0}, tile, ld);
      with_flags(params.softcap > 0.0, !bias.empty(b), false, [&](auto capped, auto biased, auto) {
        for (std::int64_t r = 0; r < rows; ++r) {
          T* const row = tile + r * ld;
          const std::int64_t seen = visible_end(range, params, first + r) - range.first;
          const T* const added = biased ? bias.row(b, h, first + r, bias_row) : nullptr;
          const std::int64_t row_index = (b * n.heads + h) * n.queries + first + r;
          T& sum = divisor[static_cast<std::size_t>(r)];
          lse[row_index] = softmax_row<capped, biased>(row, seen, cap, added, sum);
          std::fill(row + seen, row + count, T{0});
          if (params.dropout_p > 0.0) {
            dropout_row(params, row_index * n.keys, range.first, seen, keep);
#pragma omp simd
            for (std::int64_t j = 0; j < seen; ++j) row[j] *= keep[j];
          }
        }
      });
      gemm(rows, n.value_width, count, T{1}, Matrix<T>{tile, ld},
           Matrix<T>{hv.at(b, h / n.group(), range.first), hv.row}, T{0}, ho.at(b, h, first),
           ho.row);
      for (std::int64_t r = 0; r < rows; ++r) {
        const T sum = divisor[static_cast<std::size_t>(r)];
        const T factor = sum == T{0} ? T{0} : T{1} / sum;
        T* const row = ho.at(b, h, first + r);
        for (std::int64_t d = 0; d < n.value_width; ++d) row[d] *= factor;
      }
    }
  };
  parallel_for(n.batch * n.heads * blocks, block * n.keys * n.width, run);
}

/// One row of the backward: recomputes the weights p from the scores; scores becomes p as it met
/// the values (dropped), d_weights (the gradient of that) becomes the gradient of the scaled,
/// uncapped scores.
template <bool capped, bool biased, bool dropped, class T>
void backward_row(T* scores, T* d_weights, std::int64_t count, T cap, const T* bias, const T* keep,
                  T logsumexp, T delta) {
  const T inverse_cap = capped ? T{1} / cap : T{0};
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) {
    T s = scores[j];
    T slope = T{1};
    if constexpr (capped) {
      const T t = VecMath::tanh(s * inverse_cap);
      s = cap * t;
      slope = T{1} - t * t;
    }
    if constexpr (biased) s += bias[j];
    const T p = VecMath::exp_nonpositive(s - logsumexp);
    T g = d_weights[j];
    if constexpr (dropped) {
      g *= keep[j];
      scores[j] = p * keep[j];
    } else {
      scores[j] = p;
    }
    d_weights[j] = p * (g - delta) * slope;
  }
}

template <class T>
void clear_head(const Heads<T>& heads, std::int64_t b, std::int64_t h, std::int64_t rows,
                std::int64_t width) {
  for (std::int64_t i = 0; i < rows; ++i) std::fill_n(heads.at(b, h, i), width, T{0});
}

template <class T>
void attention_backward_typed(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                              const Tensor& key_padding_mask, const AttentionParams& params,
                              const Tensor& out, const Tensor& logsumexp, const Tensor& dout,
                              const Tensor& dq, const Tensor& dk, const Tensor& dv) {
  const AttentionSizes n(q, k, v);
  const auto optional_heads = [](const Tensor& x) {
    return x.defined() ? Heads<T>(x) : Heads<T>();
  };
  const Heads<T> hq(q), hk(k), hv(v), ho(out), hdo(dout);
  const Heads<T> hdq = optional_heads(dq), hdk = optional_heads(dk), hdv = optional_heads(dv);
  const ScoreBias<T> bias(n, mask, key_padding_mask);
  const T* const lse = logsumexp.data<T>();
  const std::int64_t block = std::min(n.queries, query_block(n, params.causal, 2, sizeof(T)));
  const T cap = static_cast<T>(params.softcap), scale = static_cast<T>(params.scale);

  // A key head belongs to one thread, which adds up the query heads of its group and their blocks
  // in order.
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    Scratch<T> scratch((2 * block + 2) * n.keys);
    T* const scores = scratch.take(block * n.keys);
    T* const d_scores = scratch.take(block * n.keys);
    T* const bias_row = scratch.take(n.keys);
    T* const keep = scratch.take(n.keys);

    const auto query_rows = [&](std::int64_t b, std::int64_t h, std::int64_t first) {
      const std::int64_t g = h / n.group();
      const KeyRange& range = bias.keys(b);
      const std::int64_t last = std::min(first + block, n.queries), rows = last - first;
      const std::int64_t count = visible_end(range, params, last - 1) - range.first;
      const std::int64_t ld = std::max<std::int64_t>(count, 1);
      const Matrix<T> queries{hq.at(b, h, first), hq.row}, grads{hdo.at(b, h, first), hdo.row};
      gemm(rows, count, n.width, scale, queries, Matrix<T>{hk.at(b, g, range.first), hk.row, true},
           T{0}, scores, ld);
      gemm(rows, count, n.value_width, T{1}, grads,
           Matrix<T>{hv.at(b, g, range.first), hv.row, true}, T{0}, d_scores, ld);
      with_flags(params.softcap > 0.0, !bias.empty(b), params.dropout_p > 0.0,
                 [&](auto capped, auto biased, auto dropped) {
                   for (std::int64_t r = 0; r < rows; ++r) {
                     const std::int64_t i = first + r,
                                        row_index = (b * n.heads + h) * n.queries + i;
                     T* const s = scores + r * ld;
                     T* const ds = d_scores + r * ld;
                     std::int64_t seen = visible_end(range, params, i) - range.first;
                     if (lse[row_index] == -std::numeric_limits<T>::infinity()) seen = 0;
                     const T* const added = biased ? bias.row(b, h, i, bias_row) : nullptr;
                     if constexpr (dropped)
                       dropout_row(params, row_index * n.keys, range.first, seen, keep);
                     // delta = sum over keys of weight times its gradient.
                     T delta = T{0};
                     const T* const o = ho.at(b, h, i);
                     const T* const g_row = hdo.at(b, h, i);
#pragma omp simd reduction(+ : delta)
                     for (std::int64_t d = 0; d < n.value_width; ++d) delta += o[d] * g_row[d];
                     backward_row<capped, biased, dropped>(s, ds, seen, cap, added, keep,
                                                           lse[row_index], delta);
                     std::fill(s + seen, s + count, T{0});
                     std::fill(ds + seen, ds + count, T{0});
                   }
                 });
      if (hdv.data != nullptr)
        gemm(count, n.value_width, rows, T{1}, Matrix<T>{scores, ld, true}, grads, T{1},
             hdv.at(b, g, range.first), hdv.row);
      if (hdk.data != nullptr)
        gemm(count, n.width, rows, scale, Matrix<T>{d_scores, ld, true}, queries, T{1},
             hdk.at(b, g, range.first), hdk.row);
      if (hdq.data != nullptr)
        gemm(rows, n.width, count, scale, Matrix<T>{d_scores, ld},
             Matrix<T>{hk.at(b, g, range.first), hk.row}, T{0}, hdq.at(b, h, first), hdq.row);
    };

    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t b = item / n.kv_heads, g = item % n.kv_heads;
      if (hdk.data != nullptr) clear_head(hdk, b, g, n.keys, n.width);
      if (hdv.data != nullptr) clear_head(hdv, b, g, n.keys, n.value_width);
      for (std::int64_t h = g * n.group(); h < (g + 1) * n.group(); ++h)
        for (std::int64_t first = 0; first < n.queries; first += block) query_rows(b, h, first);
    }
  };
  parallel_for(n.batch * n.kv_heads, n.group() * n.queries * n.keys * n.width, run);
}

/// A mask in float32 whose expanded dimensions stay expanded.
Tensor widened_mask(const Tensor& mask) {
  if (!mask.defined() || mask.dtype() == float32) return mask;
  Shape distinct = mask.shape();
  for (std::int64_t d = 0; d < mask.dim(); ++d)
    if (mask.stride(d) == 0) distinct[d] = std::min<std::int64_t>(distinct[d], 1);
  const Tensor wide =
      widened(detail::make_view(mask, distinct, mask.strides(), mask.storage_offset()));
  Shape strides = wide.strides();
  for (std::int64_t d = 0; d < mask.dim(); ++d)
    if (mask.stride(d) == 0) strides[d] = 0;
  return detail::make_view(wide, mask.shape(), strides, 0);
}

void attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
               const Tensor& key_padding_mask, const AttentionParams& params, const Tensor& out,
               const Tensor& logsumexp) {
  if (q.dtype() == float64)
    return attention_typed<double>(q, k, v, mask, key_padding_mask, params, out, logsumexp);
  const Tensor wide_out = widened_output(out);
  attention_typed<float>(widened(q), widened(k), widened(v), widened_mask(mask), key_padding_mask,
                         params, wide_out, logsumexp);
  narrow_into(wide_out, out);
}

void attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                        const Tensor& key_padding_mask, const AttentionParams& params,
                        const Tensor& out, const Tensor& logsumexp, const Tensor& dout,
                        const Tensor& dq, const Tensor& dk, const Tensor& dv) {
  if (q.dtype() == float64)
    return attention_backward_typed<double>(q, k, v, mask, key_padding_mask, params, out, logsumexp,
                                            dout, dq, dk, dv);
  const Tensor wide_dq = widened_output(dq), wide_dk = widened_output(dk),
               wide_dv = widened_output(dv);
  attention_backward_typed<float>(widened(q), widened(k), widened(v), widened_mask(mask),
                                  key_padding_mask, params, widened(out), logsumexp, widened(dout),
                                  wide_dq, wide_dk, wide_dv);
  narrow_into(wide_dq, dq);
  narrow_into(wide_dk, dk);
  narrow_into(wide_dv, dv);
}

}  // namespace

void add_attention_kernels(Backend& table) {
  table.attention = attention;
  table.attention_backward = attention_backward;
}

}  // namespace norma::cpu_kernels
