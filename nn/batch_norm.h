// The norms of channels as layers. Formulas, gradients and sources stand in ops/batch_norm.h and
// ops/power_norm.h.
#pragma once

#include "norma/nn/norm.h"
#include "norma/ops/batch_norm.h"
#include "norma/ops/power_norm.h"

namespace norma::nn {

/// As torch.nn.BatchNorm1d and its 2- and 3-dimensional kin: input [samples, num_features] or
/// [samples, num_features, *]. Without momentum the running statistics are cumulative means.
/// Buffers running_mean, running_var and num_batches_tracked; without track_running_stats the
/// batch's statistics serve in evaluation, too.
class BatchNorm : public Norm {
 public:
  explicit BatchNorm(std::int64_t num_features, double eps = 1e-5,
                     std::optional<double> momentum = 0.1, bool affine = true,
                     bool track_running_stats = true);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;

  std::int64_t num_features;
  double eps;
  std::optional<double> momentum;
  Tensor weight, bias;                                    ///< undefined without affine
  Tensor running_mean, running_var, num_batches_tracked;  ///< undefined without tracking

 protected:
  /// Counts a batch in training; the momentum for it.
  double next_momentum();
  bool uses_batch() const { return is_training() || !running_mean.defined(); }
  /// The mask of use_padding for the tokens of x, or undefined.
  Tensor mask_for(const Tensor& x) const;

  Tensor padding_mask_;
};

/// BatchNorm of tokens [..., num_features] that leaves padding out of the statistics: see
/// use_padding. Without a mask this is naive batch normalization.
class MaskedBatchNorm : public BatchNorm {
 public:
  using BatchNorm::BatchNorm;
  Tensor forward(const Tensor& x) override;
  void use_padding(const Tensor& padding_mask) override { padding_mask_ = padding_mask; }
};

/// BatchNorm of tokens that counts padding as if it were text: what BatchNorm1d over the tokens of
/// a padded batch does.
class NaiveBatchNorm : public MaskedBatchNorm {
 public:
  using MaskedBatchNorm::MaskedBatchNorm;
  void use_padding(const Tensor& /*padding_mask*/) override {}
};

/// MaskedBatchNorm with the penalty of RegularizedBN, to be added to the loss after each forward in
/// training: norm_penalty sums those of a model.
class RegularizedBatchNorm : public MaskedBatchNorm {
 public:
  explicit RegularizedBatchNorm(std::int64_t num_features,
                                const RegularizedBatchNormOptions& options = {});
  Tensor forward(const Tensor& x) override;
  /// Of the last forward; a scalar, 0 in evaluation.
  Tensor penalty() const override { return penalty_; }

 private:
  RegularizedBatchNormOptions options_;
  Tensor penalty_;
};

/// Group scaling (RMSNorm without weight over `groups` groups of channels), then power_norm.
/// Buffers running_phi (ones), ema_gz (zeros) and num_batches_tracked. Source: MaskPowerNorm of
/// sIncerass/powernorm.
class PowerNorm : public Norm {
 public:
  explicit PowerNorm(std::int64_t num_features, std::int64_t groups = 1,
                     const PowerNormOptions& options = {});
  Tensor forward(const Tensor& x) override;
  void use_padding(const Tensor& padding_mask) override { padding_mask_ = padding_mask; }

  std::int64_t groups;
  PowerNormOptions options;
  Tensor weight, bias;
  Tensor running_phi, ema_gz, num_batches_tracked;

 private:
  Tensor padding_mask_;
};

}  // namespace norma::nn
