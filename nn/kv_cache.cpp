#include "norma/nn/kv_cache.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"

#include <algorithm>

namespace norma::nn {

namespace {

constexpr std::int64_t smallest_capacity = 64;

Tensor grown(const Tensor& kept, std::int64_t length, const Tensor& like, std::int64_t capacity) {
  Tensor room = empty({like.size(0), capacity, like.size(1), like.size(3)},
                      {.dtype = like.dtype(), .device = like.device()});
  if (length > 0) room.narrow(1, 0, length).copy_(kept.narrow(1, 0, length));
  return room;
}

}  // namespace

void KeyValueCache::make_room(const Tensor& like, std::int64_t length) {
  const std::int64_t capacity = key_.defined() ? key_.size(1) : 0;
  if (length <= capacity) return;
  const std::int64_t larger = std::max({smallest_capacity, 2 * capacity, length});
  key_ = grown(key_, length_, like, larger);
  value_ = grown(value_, length_, like, larger);
}

std::pair<Tensor, Tensor> KeyValueCache::append(const Tensor& key, const Tensor& value) {
  constexpr const char* name = "KeyValueCache";
  check<AutogradError>(!GradMode::is_enabled(), name,
                       "a cache must be used without gradients; got gradients enabled; put a "
                       "NoGradGuard around the loop that decodes");
  check<ShapeError>(key.dim() == 4 && value.shape() == key.shape(), name,
                    "key and value must both be [batch, heads, length, head_dim]; got {} and {}",
                    key.shape(), value.shape());
  if (key_.defined())
    check<ShapeError>(
        key.size(0) == key_.size(0) && key.size(1) == key_.size(2) && key.size(3) == key_.size(3),
        name,
        "keys must have the batch, heads and width of those before, [{}, {}, ..., "
        "{}]; got {}; start another text with an empty cache",
        key_.size(0), key_.size(2), key_.size(3), key.shape());
  const std::int64_t added = key.size(2);
  make_room(key, length_ + added);
  key_.narrow(1, length_, added).copy_(key.transpose(1, 2));
  value_.narrow(1, length_, added).copy_(value.transpose(1, 2));
  length_ += added;
  return {key_.narrow(1, 0, length_).transpose(1, 2), value_.narrow(1, 0, length_).transpose(1, 2)};
}

}  // namespace norma::nn
