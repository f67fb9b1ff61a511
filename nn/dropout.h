// Dropout: zeroes elements at random while training.
#pragma once

#include "norma/nn/layer.h"

namespace norma::nn {

/// In training each element is zeroed with probability p and the rest is divided by 1 - p; in
/// evaluation the identity. As torch.nn.Dropout. Throws ValueError unless 0 <= p <= 1.
class Dropout : public Layer<Dropout> {
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x);
  std::string extra_repr() const override;

  double p;
};

}  // namespace norma::nn
