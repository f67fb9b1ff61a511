// From configuration and batches to norma's model and tensors.
#pragma once

#include <memory>

#include "imdb/batches.h"
#include "imdb/config.h"
#include "norma/nn/classifier.h"

namespace imdb {

/// The model's configuration for a vocabulary of that size. Throws norma::ValueError for an
/// impossible one.
norma::nn::ClassifierConfig make_classifier_config(const TrainConfig& config,
                                                   std::int64_t vocabulary);

/// A new model on `device`, initialized from the CPU's default generator (so that a seed gives the
/// same weights on every device).
std::unique_ptr<norma::nn::TransformerClassifier> make_model(const TrainConfig& config,
                                                             std::int64_t vocabulary,
                                                             const norma::Device& device);

/// How batches for this configuration are cut.
BatchOptions make_batch_options(const TrainConfig& config);

/// A batch as the model takes it.
struct BatchTensors {
  norma::Tensor tokens;        ///< [size, length] int64
  norma::Tensor padding_mask;  ///< [size, length] bool, true = padding; undefined: there is none
  norma::Tensor bigrams;       ///< [size, length] int64; undefined without bigrams
  norma::Tensor labels;        ///< [size] int64
};
BatchTensors to_tensors(const Batch& batch, const norma::Device& device);

}  // namespace imdb
