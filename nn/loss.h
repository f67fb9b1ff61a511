// Losses as layers.
#pragma once

#include "norma/nn/layer.h"

namespace norma::nn {

/// Mean cross-entropy of logits [rows, classes] against class indices [rows]. As
/// torch.nn.CrossEntropyLoss.
class CrossEntropyLoss : public Layer<CrossEntropyLoss> {
 public:
  /// `weight` [classes] or undefined; rows whose target is `ignore_index` do not count.
  explicit CrossEntropyLoss(Tensor weight = {}, std::int64_t ignore_index = -100,
                            double label_smoothing = 0.0);
  Tensor forward(const Tensor& logits, const Tensor& target);
  std::string extra_repr() const override;

  Tensor weight;
  std::int64_t ignore_index;
  double label_smoothing;
};

}  // namespace norma::nn
