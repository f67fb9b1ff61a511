#include "norma/nn/loss.h"

#include "norma/ops/loss.h"

namespace norma::nn {

CrossEntropyLoss::CrossEntropyLoss(Tensor class_weight, std::int64_t ignored, double smoothing)
    : weight(std::move(class_weight)), ignore_index(ignored), label_smoothing(smoothing) {
  check<ValueError>(label_smoothing >= 0.0 && label_smoothing <= 1.0, "CrossEntropyLoss",
                    "label_smoothing must be in [0, 1]; got {}", label_smoothing);
  if (weight.defined()) register_buffer("weight", weight);
}

Tensor CrossEntropyLoss::forward(const Tensor& logits, const Tensor& target) {
  return cross_entropy(
      logits, target,
      {.weight = weight, .ignore_index = ignore_index, .label_smoothing = label_smoothing});
}

std::string CrossEntropyLoss::extra_repr() const {
  return label_smoothing == 0.0 ? "" : fmt::format("label_smoothing={}", label_smoothing);
}

}  // namespace norma::nn
