// What the forward and the backward of attention share on the CPU: where the heads lie, which keys
// a block of queries can see, and the random mask of a row.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "norma/ops/backend.h"
#include "norma/ops/cpu/philox_simd.h"

namespace norma::cpu_kernels {

/// A [B, H, L, D] tensor with adjacent columns.
template <class T>
struct Heads {
  Heads() = default;
  explicit Heads(const Tensor& x)
      : data(x.data<T>()),
        batch(x.stride(0)),
        head(x.stride(1)),
        // A single row has no next one; the libraries still want a sane distance.
        row(x.size(2) > 1 ? x.stride(2) : std::max<std::int64_t>(x.size(3), 1)) {}
  T* at(std::int64_t b, std::int64_t h, std::int64_t i = 0) const {
    return data + b * batch + h * head + i * row;
  }
  T* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0;
};

/// Keys [first, last) of one batch element hold all that are not padding.
struct KeyRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool holes = false;  ///< some inside are padding
};

struct AttentionSizes {
  AttentionSizes(const Tensor& q, const Tensor& k, const Tensor& v)
      : batch(q.size(0)),
        heads(q.size(1)),
        kv_heads(k.size(1)),
        queries(q.size(2)),
        keys(k.size(2)),
        width(q.size(3)),
        value_width(v.size(3)) {}
  std::int64_t group() const { return heads / kv_heads; }
  std::int64_t batch, heads, kv_heads, queries, keys, width, value_width;
};

/// What is added to the scores of a row: the mask, -inf for padding, or both.
template <class T>
class ScoreBias {
 public:
  ScoreBias(const AttentionSizes& sizes, const Tensor& mask, const Tensor& key_padding_mask);

  const KeyRange& keys(std::int64_t b) const { return ranges_[static_cast<std::size_t>(b)]; }
  bool empty(std::int64_t b) const { return mask_ == nullptr && !keys(b).holes; }
  /// The additions to keys [first, …) of row (b, h, i); `buffer` (sizes.keys elements) may hold
  /// them.
  const T* row(std::int64_t b, std::int64_t h, std::int64_t i, T* buffer) const;

 private:
  const T* mask_ = nullptr;
  Shape mask_strides_;
  std::int64_t key_count_;
  std::vector<KeyRange> ranges_;
  std::vector<T> padding_;  ///< [B, keys] of 0 or -inf, where there are holes
};

/// Factors 1 / (1 - p) or 0 of keys [first, first + count) of a row whose word 0 is `row_word`;
/// `keep` takes them.
template <class T>
void dropout_row(const AttentionParams& params, std::int64_t row_word, std::int64_t first,
                 std::int64_t count, T* keep) {
  // uniform(word) >= p in integers, as the dropout kernel decides it.
  const auto threshold = static_cast<std::int32_t>(std::ceil(params.dropout_p * 16777216.0));
  const T scale = params.dropout_p < 1.0 ? static_cast<T>(1.0 / (1.0 - params.dropout_p)) : T{0};
  const std::int64_t word = row_word + first;
  auto block = static_cast<std::uint64_t>(word / 4);
  alignas(64) std::uint32_t words[philox_chunk];
  for (std::int64_t begin = -(word % 4); begin < count; begin += philox_chunk) {
    philox_words(params.philox, block, words);
    block += philox_lanes;
    const std::int64_t to = std::min(philox_chunk, count - begin);
#pragma omp simd
    for (std::int64_t t = std::max<std::int64_t>(0, -begin); t < to; ++t)
      keep[begin + t] = static_cast<std::int32_t>(words[t] >> 8) >= threshold ? scale : T{0};
  }
}

/// Keys that query i can see of those in `range`: [range.first, result).
inline std::int64_t visible_end(const KeyRange& range, const AttentionParams& params,
                                std::int64_t i) {
  if (!params.causal) return range.last;
  return std::clamp(i + 1, range.first, range.last);
}

/// Query rows of a block whose `tiles` score tiles stay within half a megabyte together. Not a
/// function of the number of threads: blocks are summed one after the other.
inline std::int64_t query_block(const AttentionSizes& sizes, bool causal, std::int64_t tiles,
                                std::size_t element) {
  const std::int64_t budget =
      (std::int64_t{256} << 10) / static_cast<std::int64_t>(element) / tiles;
  // Small blocks skip more of a causal triangle; below 32 rows the products become slow.
  const std::int64_t rows = budget / std::max<std::int64_t>(sizes.keys, 1) / 16 * 16;
  return std::clamp<std::int64_t>(rows, 32, causal ? 64 : 256);
}

/// Calls `f` with a constant for each run-time flag, so that its inner loops have no branches.
template <class F>
void with_flags(bool a, bool b, bool c, F&& f) {
  const auto pick = [&](auto fa, auto fb) {
    if (c)
      f(fa, fb, std::true_type{});
    else
      f(fa, fb, std::false_type{});
  };
  if (a && b)
    pick(std::true_type{}, std::true_type{});
  else if (a)
    pick(std::true_type{}, std::false_type{});
  else if (b)
    pick(std::false_type{}, std::true_type{});
  else
    pick(std::false_type{}, std::false_type{});
}

}  // namespace norma::cpu_kernels
