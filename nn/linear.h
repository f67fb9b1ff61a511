// Linear: y = x W^T + b.
#pragma once

#include "norma/nn/layer.h"
#include "norma/ops/linear.h"

namespace norma::nn {

/// x [..., in_features] to [..., out_features] by weight [out_features, in_features] and bias
/// [out_features]. Both start as U(-1/sqrt(in_features), 1/sqrt(in_features)). As torch.nn.Linear.
class Linear : public Layer<Linear> {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias = true);
  /// `activation` is fused into the product; hooks of this layer then see the activated output.
  Tensor forward(const Tensor& x, norma::Activation activation = norma::Activation::none);
  void reset_parameters();
  std::string extra_repr() const override;

  std::int64_t in_features, out_features;
  Tensor weight;
  Tensor bias;  ///< undefined without bias
};

}  // namespace norma::nn
