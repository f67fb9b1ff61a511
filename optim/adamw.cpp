#include "norma/optim/adamw.h"

#include "norma/ops/backend.h"

#include <cmath>

namespace norma::optim {

AdamW::AdamW(const TensorList& params, const AdamWOptions& options)
    : AdamW(std::vector<ParamGroup>{{.params = params}}, options) {}

AdamW::AdamW(const std::vector<ParamGroup>& groups, const AdamWOptions& options)
    : Optimizer("adamw"), defaults_(options) {
  add_param_groups(groups);
}

void AdamW::complete(ParamGroup& group) const {
  check_absent(group.momentum, "momentum");
  check_absent(group.dampening, "dampening");
  check_absent(group.nesterov, "nesterov");
  group.lr = group.lr.value_or(defaults_.lr);
  group.betas = group.betas.value_or(defaults_.betas);
  group.eps = group.eps.value_or(defaults_.eps);
  group.weight_decay = group.weight_decay.value_or(defaults_.weight_decay);
  group.maximize = group.maximize.value_or(defaults_.maximize);
  const auto not_negative = [this](const char* option, double value) {
    check_option(value >= 0 && std::isfinite(value), option, "finite and at least 0", value);
  };
  not_negative("lr", *group.lr);
  not_negative("eps", *group.eps);
  not_negative("weight_decay", *group.weight_decay);
  for (const double beta : *group.betas)
    check_option(beta >= 0 && beta < 1, "betas", "in [0, 1)", beta);
}

std::vector<const char*> AdamW::slot_names(const ParamGroup& /*group*/) const {
  return {"exp_avg", "exp_avg_sq"};
}

void AdamW::update(const ParamGroup& group, const Batch& batch, const Tensor& grad_scale) {
  const AdamWParams params{.lr = *group.lr,
                           .beta1 = (*group.betas)[0],
                           .beta2 = (*group.betas)[1],
                           .eps = *group.eps,
                           .weight_decay = *group.weight_decay,
                           .step = batch.step,
                           .maximize = *group.maximize};
  backend(batch.params[0])
      .adamw(batch.params, batch.masters, batch.grads, batch.slots[0], batch.slots[1], grad_scale,
             params);
}

}  // namespace norma::optim
