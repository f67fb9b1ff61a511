// Running the tape backwards: backward() into the leaves, grad() into a list.
//
// Order at a tensor whose gradient is complete: its hooks as registered (each may replace the
// gradient), then retain_grad, then the operation that made it. At a leaf: hooks, then accumulation
// into `.grad()`.
//
// Accumulation contract: a leaf without a gradient takes the arriving buffer when nobody else holds
// it and it is contiguous, otherwise a copy. A leaf with a gradient adds in place, or out of place
// under create_graph.
//
// Graphs that share leaves are built and run by one thread at a time. A backward function may
// itself call grad() on a graph of its own.
#pragma once

#include "norma/core/grad_mode.h"
#include "norma/core/tensor.h"

#include <functional>

namespace norma {

/// Adds the derivatives of `tensors` to the leaves. `gradients[i]` may be undefined where
/// tensors[i] has one element.
///
/// With create_graph the gradient in `.grad()` has a history that leads back to the leaf, and the
/// two keep each other alive until set_grad({}); for higher derivatives call grad() instead, which
/// has no such cycle.
///
/// Throws AutogradError: nothing requires grad; non-scalar without gradient; graph already
/// released.
void backward(const TensorList& tensors, const TensorList& gradients = {},
              const BackwardOptions& options = {});

/// Options of grad().
struct GradOptions {
  TensorList grad_outputs = {};                     ///< as `gradients` of backward()
  std::optional<bool> retain_graph = std::nullopt;  ///< default: create_graph
  bool create_graph = false;                        ///< the result can be differentiated again
  bool allow_unused =
      false;  ///< undefined results for inputs that outputs do not depend on, instead of an error
};

/// The derivatives of the sum of `outputs` (weighted by grad_outputs) with respect to `inputs`,
/// without touching any
/// `.grad()`. Only the part of the graph that leads to `inputs` runs. As torch.autograd.grad.
TensorList grad(const TensorList& outputs, const TensorList& inputs,
                const GradOptions& options = {});

/// Backward of a fused operation under create_graph: runs its definition `composite` on the saved
/// inputs and differentiates that, so that the result has derivatives of any order. Undefined
/// inputs stay undefined, and get an undefined gradient, as do those that do not require grad.
TensorList composite_backward(const std::function<TensorList(const TensorList&)>& composite,
                              const TensorList& inputs, const TensorList& grad_outputs);

}  // namespace norma
