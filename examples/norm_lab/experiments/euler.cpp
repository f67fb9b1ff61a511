// R5: Euler's theorem as a test of an autograd engine.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norm_lab/relu_stack.h"
#include "norma/core/random.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduction.h"

#include <algorithm>
#include <cmath>

namespace norm_lab {

using namespace norma;

namespace {

/// <W, dL/dW> of each layer, and the loss.
struct Products {
  std::vector<double> by_layer;
  double loss = 0.0;
  /// Largest distance between two layers, by the loss.
  double spread() const {
    const auto [least, most] = std::minmax_element(by_layer.begin(), by_layer.end());
    return (*most - *least) / std::abs(loss);
  }
};

Products products(std::uint64_t seed, bool bias, DType dtype) {
  manual_seed(seed);
  const auto net = relu_stack(8, 512, bias);
  net->to(dtype);
  const Tensor loss = (*net)(randn({32, 512}, {.dtype = dtype})).sum();
  loss.backward();
  Products result;
  result.loss = loss.item();
  for (const nn::NamedParameter& one : net->named_parameters())
    if (one.kind == nn::ParameterKind::matrix)
      result.by_layer.push_back((one.tensor.detach() * one.tensor.grad()).sum().item());
  return result;
}

}  // namespace

Result euler(const Settings& settings) {
  const Products single = products(settings.seed, false, float32);
  const Products precise = products(settings.seed, false, float64);
  const Products biased = products(settings.seed, true, float32);
  const std::vector<double> layers = counted(8);
  return {.claim =
              "In a ReLU network without biases ⟨W, ∂L/∂W⟩ is one number for all layers: the "
              "loss is homogeneous in each of them (Euler).",
          .source = "R5; a derivation, and a test that any autograd engine must pass",
          .setting = "8 × [Linear(512, 512), ReLU], loss = output.sum(), batch 32 of N(0, 1)",
          .rows = {{"float32: largest distance of layers / loss", at_most(1e-4), single.spread()},
                   {"float64: the same", at_most(1e-12), precise.spread()},
                   {"float64: first layer / loss", near(1.0, 1e-12),
                    precise.by_layer[0] / precise.loss},
                   {"with biases it does not hold: distance / loss", at_least(0.01),
                    biased.spread(), Tests::reference}},
          .finding =
              "Each of the products equals the loss itself. An engine that forgets one use "
              "of a tensor, or counts it twice, fails here.",
          .charts = {{.title = "⟨W, ∂L/∂W⟩ of each layer",
                      .x_label = "layer",
                      .y_label = "product",
                      .series = {{"without biases", layers, single.by_layer},
                                 {"with", layers, biased.by_layer}}}}};
}

}  // namespace norm_lab
