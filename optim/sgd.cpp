#include "norma/optim/sgd.h"

#include "norma/ops/backend.h"

#include <cmath>

namespace norma::optim {

SGD::SGD(const TensorList& params, const SGDOptions& options)
    : SGD(std::vector<ParamGroup>{{.params = params}}, options) {}

SGD::SGD(const std::vector<ParamGroup>& groups, const SGDOptions& options)
    : Optimizer("sgd"), defaults_(options) {
  add_param_groups(groups);
}

void SGD::complete(ParamGroup& group) const {
  check_absent(group.betas, "betas");
  check_absent(group.eps, "eps");
  group.lr = group.lr.value_or(defaults_.lr);
  group.momentum = group.momentum.value_or(defaults_.momentum);
  group.dampening = group.dampening.value_or(defaults_.dampening);
  group.weight_decay = group.weight_decay.value_or(defaults_.weight_decay);
  group.nesterov = group.nesterov.value_or(defaults_.nesterov);
  group.maximize = group.maximize.value_or(defaults_.maximize);
  const auto not_negative = [this](const char* option, double value) {
    check_option(value >= 0 && std::isfinite(value), option, "finite and at least 0", value);
  };
  not_negative("lr", *group.lr);
  not_negative("momentum", *group.momentum);
  not_negative("weight_decay", *group.weight_decay);
  check_option(std::isfinite(*group.dampening), "dampening", "finite", *group.dampening);
  check(!*group.nesterov || (*group.momentum > 0 && *group.dampening == 0), "sgd",
        "nesterov must have momentum above 0 and dampening 0; got momentum {} and dampening {}",
        *group.momentum, *group.dampening);
}

std::vector<const char*> SGD::slot_names(const ParamGroup& group) const {
  if (*group.momentum == 0) return {};
  return {"momentum_buffer"};
}

void SGD::update(const ParamGroup& group, const Batch& batch, const Tensor& grad_scale) {
  const SgdParams params{.lr = *group.lr,
                         .momentum = *group.momentum,
                         .dampening = *group.dampening,
                         .weight_decay = *group.weight_decay,
                         .nesterov = *group.nesterov,
                         .maximize = *group.maximize,
                         .first_step = batch.fresh};
  backend(batch.params[0])
      .sgd(batch.params, batch.masters, batch.grads,
           batch.slots.empty() ? TensorList{} : batch.slots[0], grad_scale, params);
}

}  // namespace norma::optim
