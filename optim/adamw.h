// AdamW: Adam with decoupled weight decay.
#pragma once

#include "norma/optim/optimizer.h"

namespace norma::optim {

/// Defaults of all groups, PyTorch's.
struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool maximize = false;
};

/// For gradient g at step t, in this order, as torch.optim.AdamW:
///
///     θ ← θ (1 - lr·λ)
///     m ← m + (1 - β₁)(g - m)
///     v ← β₂ v + (1 - β₂) g²
///     θ ← θ - lr/(1 - β₁ᵗ) · m / (√v / √(1 - β₂ᵗ) + ε)
///
/// Each parameter counts its own t: the steps in which it had a gradient. One pass over all tensors
/// of a group. State: exp_avg (m), exp_avg_sq (v). Source: Loshchilov, Hutter: Decoupled Weight
/// Decay Regularization (ICLR 2019).
class AdamW final : public Optimizer {
 public:
  explicit AdamW(const TensorList& params, const AdamWOptions& options = {});
  explicit AdamW(const std::vector<ParamGroup>& groups, const AdamWOptions& options = {});

 private:
  void complete(ParamGroup& group) const override;
  std::vector<const char*> slot_names(const ParamGroup& group) const override;
  void update(const ParamGroup& group, const Batch& batch, const Tensor& grad_scale) override;

  AdamWOptions defaults_;
};

}  // namespace norma::optim
