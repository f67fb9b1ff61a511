// Key-value caches: what attention keeps of earlier positions while a text is written token by
// token.
#pragma once

#include "norma/core/tensor.h"

#include <utility>
#include <vector>

namespace norma::nn {

/// Keys (after norm and rotation) and values of the positions that one attention layer has seen.
/// Their room doubles when it is full, so that a token costs the same at every length on average.
class KeyValueCache {
 public:
  /// Adds the next positions, [batch, heads, new, head_dim], and returns keys and values of all
  /// there are, as views that are valid until the next append. The cache is no part of the tape:
  /// throws AutogradError where gradients are recorded. Throws ShapeError for another batch, number
  /// of heads or width than before.
  std::pair<Tensor, Tensor> append(const Tensor& key, const Tensor& value);
  /// Positions held.
  std::int64_t length() const { return length_; }

 private:
  void make_room(const Tensor& like, std::int64_t length);

  Tensor key_, value_;  // [batch, capacity, heads, head_dim]: as split from a projection
  std::int64_t length_ = 0;
};

/// The caches of all layers of a decoder. An empty one fits any model; afterwards it belongs to the
/// model and the batch that filled it.
struct DecoderCache {
  std::vector<KeyValueCache> layers;
  std::int64_t length() const { return layers.empty() ? 0 : layers.front().length(); }
};

}  // namespace norma::nn
