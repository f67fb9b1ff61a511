// The network of the first article: Linear and ReLU, again and again, with a norm if wanted.
#pragma once

#include "norma/core/factory.h"
#include "norma/nn/activation.h"
#include "norma/nn/linear.h"
#include "norma/nn/norm.h"
#include "norma/nn/sequential.h"

#include <memory>

namespace norm_lab {

enum class StackNorm {
  none,
  before_relu,  ///< Linear, RMSNorm, ReLU
  after_relu,   ///< Linear, ReLU, RMSNorm
};

/// `depth` layers of one width, with PyTorch's initial values.
inline std::unique_ptr<norma::nn::Sequential> relu_stack(std::int64_t depth, std::int64_t width,
                                                         bool bias,
                                                         StackNorm norm = StackNorm::none) {
  auto net = std::make_unique<norma::nn::Sequential>();
  for (std::int64_t layer = 0; layer < depth; ++layer) {
    net->emplace<norma::nn::Linear>(width, width, bias);
    if (norm == StackNorm::before_relu) net->emplace<norma::nn::RMSNorm>(width);
    net->emplace<norma::nn::ReLU>();
    if (norm == StackNorm::after_relu) net->emplace<norma::nn::RMSNorm>(width);
  }
  return net;
}

}  // namespace norm_lab
