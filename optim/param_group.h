// ParamGroup: parameters that an optimizer treats alike.
#pragma once

#include "norma/core/tensor.h"

#include <array>
#include <optional>

namespace norma::optim {

/// Parameters with the options that differ from the optimizer's. What is not set takes the
/// optimizer's value when the group is added; what is set counts, zero included. An option that the
/// optimizer does not know is an error.
///
///     AdamW optimizer({{.params = head, .lr = 1e-2}, {.params = body, .weight_decay = 0.0}}, {.lr
///     = 1e-3});
struct ParamGroup {
  TensorList params = {};
  std::optional<double> lr = std::nullopt;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<std::array<double, 2>> betas = std::nullopt;  ///< AdamW
  std::optional<double> eps = std::nullopt;                   ///< AdamW
  std::optional<double> momentum = std::nullopt;              ///< SGD
  std::optional<double> dampening = std::nullopt;             ///< SGD
  std::optional<bool> nesterov = std::nullopt;                ///< SGD
  std::optional<bool> maximize = std::nullopt;
};

/// Calls `f(name, option)` for each optional of `group`.
template <class Group, class F>
void visit_options(Group& group, const F& f) {
  f("lr", group.lr);
  f("weight_decay", group.weight_decay);
  f("betas", group.betas);
  f("eps", group.eps);
  f("momentum", group.momentum);
  f("dampening", group.dampening);
  f("nesterov", group.nesterov);
  f("maximize", group.maximize);
}

}  // namespace norma::optim
