// The norms of rows as layers, besides LayerNorm and RMSNorm. Formulas, gradients and sources stand
// in ops/norm.h, ops/group_norm.h and ops/poly_norm.h; here are names and initial values.
#pragma once

#include "norma/nn/linear.h"
#include "norma/nn/norm.h"

namespace norma::nn {

/// RMSNorm as HF LlamaRMSNorm: the normalized input is rounded to its dtype before the weight
/// (ones) multiplies.
class LlamaRMSNorm : public Norm {
 public:
  explicit LlamaRMSNorm(std::int64_t hidden_size, double eps = 1e-6);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  double eps;
  Tensor weight;
};

/// RMSNorm as HF GemmaRMSNorm: gain 1 + weight, weight starts as zeros, so that weight decay pulls
/// the gain to 1.
class GemmaRMSNorm : public Norm {
 public:
  explicit GemmaRMSNorm(std::int64_t dim, double eps = 1e-6);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  double eps;
  Tensor weight;
};

/// LayerNorm with gain 1 + weight, weight zeros at first, so that weight decay pulls the gain to 1:
/// Megatron-LM's and NeMo's layernorm1p.
class LayerNorm1P : public Norm {
 public:
  explicit LayerNorm1P(std::int64_t width, double eps = 1e-5, bool bias = true);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  double eps;
  Tensor weight;
  Tensor bias;  ///< undefined without it
};

/// RMSNorm as first released: x / (rms + eps) * scale (+ offset). Parameter names of
/// bzhangGo/rmsnorm.
class OriginalRMSNorm : public Norm {
 public:
  explicit OriginalRMSNorm(std::int64_t d, double eps = 1e-8, bool bias = false,
                           bool elementwise_affine = true);
  Tensor forward(const Tensor& x) override;
  std::int64_t d;
  double eps;
  Tensor scale;   ///< undefined without elementwise_affine
  Tensor offset;  ///< undefined without elementwise_affine or bias
};

/// pRMSNorm: the mean square of the first int(d * p) elements.
class PRMSNorm : public Norm {
 public:
  explicit PRMSNorm(std::int64_t d, double p = 0.0625, double eps = 1e-8,
                    bool elementwise_affine = true);
  Tensor forward(const Tensor& x) override;
  double p, eps;
  Tensor scale;  ///< undefined without elementwise_affine
};

/// CRMSNorm: RMSNorm of a zero-mean vector whose last element is not stored.
class CRMSNorm : public Norm {
 public:
  explicit CRMSNorm(std::int64_t d, double eps = 1e-8, bool elementwise_affine = true);
  Tensor forward(const Tensor& x) override;
  double eps;
  Tensor weight;  ///< undefined without elementwise_affine
};

/// g x / max(|x|, eps), one learned g that starts as sqrt(d).
class ScaleNorm : public Norm {
 public:
  explicit ScaleNorm(std::int64_t d, double eps = 1e-5);
  Tensor forward(const Tensor& x) override;
  double eps;
  Tensor g;  ///< [1]
};

/// x / max(|x|, eps).
class L2Norm : public Norm {
 public:
  explicit L2Norm(double epsilon = 1e-12) : eps(epsilon) {}
  Tensor forward(const Tensor& x) override;
  double eps;
};

/// sqrt(d) x / max(|x|, eps), nothing learned.
class SimpleRMSNorm : public Norm {
 public:
  explicit SimpleRMSNorm(double epsilon = 1e-12) : eps(epsilon) {}
  Tensor forward(const Tensor& x) override;
  double eps;
};

/// AdaNorm: c (1 - k h) h with a factor that is a constant to the gradient; nothing learned.
class AdaNorm : public Norm {
 public:
  explicit AdaNorm(std::int64_t dim, double c = 1.0, double k = 0.1, double eps = 1e-5);
  Tensor forward(const Tensor& x) override;
  std::int64_t dim;
  double c, k, eps;
};

/// As torch.nn.GroupNorm: input [samples, num_channels, *].
class GroupNorm : public Norm {
 public:
  GroupNorm(std::int64_t num_groups, std::int64_t num_channels, double eps = 1e-5,
            bool affine = true);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  std::int64_t num_groups, num_channels;
  double eps;
  Tensor weight, bias;  ///< undefined without affine
};

/// GroupNorm over the channels of each token: input [..., num_channels].
class TokenGroupNorm : public GroupNorm {
 public:
  using GroupNorm::GroupNorm;
  Tensor forward(const Tensor& x) override;
};

/// As torch.nn.InstanceNorm1d and its 2- and 3-dimensional kin: input [samples, num_features, *].
class InstanceNorm : public Norm {
 public:
  explicit InstanceNorm(std::int64_t num_features, double eps = 1e-5, double momentum = 0.1,
                        bool affine = false, bool track_running_stats = false);
  Tensor forward(const Tensor& x) override;
  double eps, momentum;
  Tensor weight, bias;               ///< undefined without affine
  Tensor running_mean, running_var;  ///< undefined without track_running_stats
  Tensor num_batches_tracked;        ///< stays 0 as PyTorch's does: for its state dicts
};

/// w0 n(x^3) + w1 n(x^2) + w2 n(x) + bias: an activation. Weights start as 1/3, bias as 0.
class PolyNorm : public Norm {
 public:
  explicit PolyNorm(double eps = 1e-6);
  Tensor forward(const Tensor& x) override;
  double eps;
  Tensor weight;  ///< [3]
  Tensor bias;    ///< [1]
};

/// What a norm with a condition gives.
struct ModulatedNorm {
  Tensor output;
  Tensor gate;  ///< [samples, 1, width]; undefined without `gated`
};

/// LayerNorm without affine whose scale, shift and gate are linear functions of a condition
/// [samples, condition_dim], all zero at first (adaLN-Zero): a sublayer f stands as x + gate *
/// f(output). DiT applies silu to the condition before; that is left to the caller. Source: DiT
/// (Peebles, Xie, arXiv 2212.09748).
class AdaLayerNorm : public Layer<AdaLayerNorm> {
 public:
  AdaLayerNorm(std::int64_t width, std::int64_t condition_dim, bool gated = true,
               double eps = 1e-6);
  /// x [samples, length, width].
  ModulatedNorm forward(const Tensor& x, const Tensor& condition);
  std::string extra_repr() const override;
  double eps;
  Linear modulation;  ///< to shift, scale and, where gated, gate

 private:
  std::int64_t width_;
  bool gated_;
};

/// The same on RMSNorm with a weight: h * weight * (1 + scale) + shift. Source: modulated RMSNorm
/// of Liger Kernel.
class AdaRMSNorm : public Layer<AdaRMSNorm> {
 public:
  AdaRMSNorm(std::int64_t width, std::int64_t condition_dim, bool gated = true, double eps = 1e-6,
             bool elementwise_affine = true);
  /// x [samples, length, width].
  ModulatedNorm forward(const Tensor& x, const Tensor& condition);
  std::string extra_repr() const override;
  double eps;
  Tensor weight;      ///< [width]; undefined without elementwise_affine
  Linear modulation;  ///< to shift, scale and, where gated, gate

 private:
  std::int64_t width_;
  bool gated_;
};

}  // namespace norma::nn
