// SGD: gradient descent with momentum.
#pragma once

#include "norma/optim/optimizer.h"

namespace norma::optim {

/// Defaults of all groups, PyTorch's.
struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;  ///< needs momentum > 0 and dampening = 0
  bool maximize = false;
};

/// For gradient g, as torch.optim.SGD:
///
///     g ← g + λ θ
///     b ← μ b + (1 - dampening) g        (b ← g the first time)
///     θ ← θ - lr · b                     (nesterov: θ - lr · (g + μ b))
///
/// State: momentum_buffer (b), where momentum is not 0.
/// Source: Sutskever, Martens, Dahl, Hinton: On the importance of initialization and momentum in
/// deep learning (ICML 2013).
class SGD final : public Optimizer {
 public:
  explicit SGD(const TensorList& params, const SGDOptions& options = {});
  explicit SGD(const std::vector<ParamGroup>& groups, const SGDOptions& options = {});

 private:
  void complete(ParamGroup& group) const override;
  std::vector<const char*> slot_names(const ParamGroup& group) const override;
  void update(const ParamGroup& group, const Batch& batch, const Tensor& grad_scale) override;

  SGDOptions defaults_;
};

}  // namespace norma::optim
