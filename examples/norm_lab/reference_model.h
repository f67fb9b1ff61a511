// The model of the experiments on initial values: the setting of Xiong et al. 2020, in which theory
// can say what comes out. Uniform attention (queries and keys are zero), Xavier's initial values,
// biases zero, and a placement's own gains.
#pragma once

#include "norma/nn/linear.h"
#include "norma/nn/transformer.h"

namespace norm_lab {

/// Encoder, mean over tokens, two classes.
struct ReferenceModel : norma::nn::Layer<ReferenceModel> {
  static constexpr std::int64_t kWidth = 64, kTokens = 16, kSamples = 4;

  norma::nn::TransformerEncoder encoder;
  norma::nn::Linear head;

  ReferenceModel(norma::nn::NormPlacement placement, std::int64_t layers);
  norma::Tensor forward(const norma::Tensor& x) { return head(encoder(x).mean({1})); }
};

/// Inputs of N(0, 1) and classes for the model.
struct ReferenceBatch {
  norma::Tensor inputs, classes;
  ReferenceBatch();
};

/// "encoder.layers.3.mlp" for (3, "mlp"); without a part the block itself.
std::string part_of_layer(std::int64_t layer, const std::string& part = "");

}  // namespace norm_lab
