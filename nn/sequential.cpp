#include "norma/nn/sequential.h"

namespace norma::nn {

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& call : calls_) y = call(y);
  return y;
}

Module& Sequential::operator[](std::size_t index) const {
  check<IndexError>(index < layers_.size(), "Sequential", "index must be below {}; got {}",
                    layers_.size(), index);
  return *layers_[index];
}

void Sequential::add(std::unique_ptr<Module> layer, std::function<Tensor(const Tensor&)> call) {
  register_module(std::to_string(layers_.size()), *layer);
  layers_.push_back(std::move(layer));
  calls_.push_back(std::move(call));
}

}  // namespace norma::nn
