// Activations as layers.
#pragma once

#include "norma/nn/layer.h"

namespace norma::nn {

/// max(x, 0). As torch.nn.ReLU.
class ReLU : public Layer<ReLU> {
 public:
  Tensor forward(const Tensor& x);
};

/// x Phi(x), or its tanh approximation. As torch.nn.GELU(approximate = "none" | "tanh").
class GELU : public Layer<GELU> {
 public:
  explicit GELU(std::string approximate = "none");
  Tensor forward(const Tensor& x);
  std::string extra_repr() const override;

  std::string approximate;
};

/// x sigmoid(x). As torch.nn.SiLU.
class SiLU : public Layer<SiLU> {
 public:
  Tensor forward(const Tensor& x);
};

/// tanh(x). As torch.nn.Tanh.
class Tanh : public Layer<Tanh> {
 public:
  Tensor forward(const Tensor& x);
};

/// 1 / (1 + exp(-x)). As torch.nn.Sigmoid.
class Sigmoid : public Layer<Sigmoid> {
 public:
  Tensor forward(const Tensor& x);
};

/// Returns its input. As torch.nn.Identity.
class Identity : public Layer<Identity> {
 public:
  Tensor forward(const Tensor& x) { return x; }
};

}  // namespace norma::nn
