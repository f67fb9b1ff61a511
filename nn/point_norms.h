// The element-wise norms as layers. Formulas, gradients and sources stand in ops/point_norm.h.
#pragma once

#include "norma/nn/norm.h"

namespace norma::nn {

/// tanh(alpha x) * weight + bias; alpha [1] starts as alpha_init, weight as ones, bias as zeros.
class DyT : public Norm {
 public:
  explicit DyT(std::int64_t width, double alpha_init = 0.5, bool bias = true);
  Tensor forward(const Tensor& x) override;
  Tensor alpha, weight, bias;  ///< bias undefined without it
};

/// erf(alpha x + shift) * weight + bias; shift [1] starts as zero, the others as in DyT.
class Derf : public Norm {
 public:
  explicit Derf(std::int64_t width, double alpha_init = 0.5, bool bias = true);
  Tensor forward(const Tensor& x) override;
  Tensor alpha, shift, weight, bias;  ///< bias undefined without it
};

/// x * gamma, gamma [width] small at first: the gain of a sublayer's output.
class LayerScale : public Norm {
 public:
  explicit LayerScale(std::int64_t width, double init_value = 1e-5);
  Tensor forward(const Tensor& x) override;
  Tensor gamma;
};

/// Each head's part of [..., heads * head_dim] times its gamma, ones at first: before the output
/// projection, as in the paper of NormFormer (fairseq's code has it behind).
class HeadScale : public Norm {
 public:
  explicit HeadScale(std::int64_t heads);
  Tensor forward(const Tensor& x) override;
  Tensor gamma;
};

}  // namespace norma::nn
