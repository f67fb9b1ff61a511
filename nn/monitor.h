// Monitor: what goes on inside of a model while it computes and trains. It sees everything through
// hooks and changes nothing.
//
//     nn::Monitor monitor(model);                    // or some of its modules alone
//     loss(model(x), y).backward();
//     monitor.before_step();
//     optimizer.step();
//     for (const auto& seen : monitor.activations()) fmt::print("{} {}\n", seen.name, seen.rms);
//     for (const auto& seen : monitor.parameters()) …   // norms of weight, gradient and update
#pragma once

#include "norma/nn/module.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace norma::nn {

/// What the last call of a module gave.
struct ActivationStats {
  std::string name;  ///< of the module, "" for the root
  double mean = 0.0;
  double std = 0.0;
  double rms = 0.0;
  double max = 0.0;            ///< largest magnitude
  double input_rms = 0.0;      ///< of the first argument
  double gradient_norm = 0.0;  ///< of the gradient by the output; 0 before a backward
};

/// What the softmax of an attention saw in its last call.
struct AttentionStats {
  std::string name;
  double entropy = 0.0;    ///< in nats, mean over queries and heads; log(length) where uniform
  double max_logit = 0.0;  ///< largest magnitude of a score
};

/// A parameter, its last gradient and its last update.
struct ParameterStats {
  std::string name;
  ParameterKind kind = ParameterKind::matrix;
  double norm = 0.0;
  double gradient_norm = 0.0;  ///< 0 without a gradient
  double update_ratio = 0.0;   ///< |change since before_step()| / |value then|; 0 without that call
};

class Monitor {
 public:
  using Filter = std::function<bool(const NamedModule&)>;

  /// Watches all modules of `model`, or those that `wanted` chooses. The model must outlive it.
  explicit Monitor(Module& model, const Filter& wanted = {});
  /// Removes its hooks.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// Of the watched modules whose result is a tensor, in the order in which they finished.
  const std::vector<ActivationStats>& activations() const;
  /// Of the watched modules that are MultiheadAttention; the scores are computed once more for it,
  /// without the padding mask.
  const std::vector<AttentionStats>& attention() const;
  /// Of all parameters, as they are now.
  std::vector<ParameterStats> parameters() const;
  /// Remembers the parameters, so that parameters() knows how far an optimizer moved them.
  void before_step();
  /// Forgets activations and attention, so that modules that no longer run do not stay.
  void clear();

 private:
  struct Seen;
  Module& model_;
  std::shared_ptr<Seen> seen_;  // the hooks hold it, too
  std::vector<RemovableHandle> handles_;
  TensorList before_;  // by parameter
};

}  // namespace norma::nn
