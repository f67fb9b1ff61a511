#include "norma/optim/optimizer.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/storage.h"

#include <algorithm>

namespace norma::optim {

namespace {

/// The dtype in which a parameter is updated and averaged.
DType accumulate_dtype(DType dtype) { return dtype == float64 ? float64 : float32; }
bool needs_master(DType dtype) { return dtype == float16 || dtype == bfloat16; }

Tensor to_tensor(double value) { return from_values(std::vector<double>{value}, {}); }
Tensor to_tensor(bool value) { return tensor(value); }
Tensor to_tensor(const std::array<double, 2>& values) {
  return from_values(std::vector<double>{values[0], values[1]}, {2});
}
void from_tensor(const Tensor& source, double& value) { value = source.item(); }
void from_tensor(const Tensor& source, bool& value) { value = source.item() != 0; }
void from_tensor(const Tensor& source, std::array<double, 2>& values) {
  const std::vector<double> both = source.to_vector<double>();
  values = {both[0], both[1]};
}

std::string state_key(std::size_t index, const std::string& name) {
  return fmt::format("state.{}.{}", index, name);
}
std::string group_key(std::size_t index, const char* option) {
  return fmt::format("param_groups.{}.{}", index, option);
}

}  // namespace

void Optimizer::check_option(bool holds, const char* option, const char* domain,
                             double value) const {
  check(holds, name_, "{} must be {}; got {}", option, domain, value);
}

void Optimizer::add_param_group(ParamGroup group) {
  for (const Tensor& parameter : group.params) {
    check(parameter.defined(), name_, "parameters must be defined; got an undefined tensor");
    check<DTypeError>(parameter.is_floating_point(), name_,
                      "parameters must be floating point; got {} of shape {}", parameter.dtype(),
                      parameter.shape());
    check(
        parameter.is_leaf(), name_,
        "parameters must be leaves; got a result of an operation, shape {}; pass the tensor it was "
        "made from, or detach() it",
        parameter.shape());
    check(parameter.is_contiguous(), name_,
          "parameters must be contiguous; got shape {} with strides {}; clone() it first",
          parameter.shape(), parameter.strides());
  }
  // All are compared by identity: also within this group.
  std::vector<const void*> known;
  const auto note = [&](const Tensor& parameter) {
    known.push_back(static_cast<const void*>(parameter.impl().get()));
  };
  for (const ParamGroup& other : groups_)
    std::for_each(other.params.begin(), other.params.end(), note);
  std::for_each(group.params.begin(), group.params.end(), note);
  std::sort(known.begin(), known.end());
  check(std::adjacent_find(known.begin(), known.end()) == known.end(), name_,
        "a parameter must be in one group, once; got one twice; tied weights are one parameter "
        "(Module::parameters() lists them once)");
  complete(group);
  states_.resize(states_.size() + group.params.size());
  groups_.push_back(std::move(group));
}

void Optimizer::add_param_groups(const std::vector<ParamGroup>& groups) {
  std::for_each(groups.begin(), groups.end(),
                [this](const auto& group) { add_param_group(group); });
  check(!states_.empty(), name_,
        "an optimizer must have parameters; got none; a layer registers "
        "its own in its constructor, by register_parameter and register_module");
}

void Optimizer::zero_grad(bool set_to_none) {
  const NoGradGuard no_grad;
  for (const ParamGroup& group : groups_) {
    for (const Tensor& parameter : group.params) {
      if (set_to_none) {
        parameter.set_grad(Tensor());
      } else if (const Tensor grad = parameter.grad(); grad.defined()) {
        // One that is part of a graph (create_graph) is replaced: zeroing it would damage the
        // graph.
        if (grad.is_leaf())
          grad.zero_();
        else
          parameter.set_grad(zeros_like(grad));
      }
    }
  }
}

void Optimizer::check_gradient(const Tensor& parameter, const Tensor& grad_scale) const {
  const Tensor grad = parameter.grad();
  if (!grad.defined()) return;
  check<ShapeError>(grad.shape() == parameter.shape(), name_,
                    "a gradient must have its parameter's shape {}; got {}", parameter.shape(),
                    grad.shape());
  check<DTypeError>(
      grad.dtype() == parameter.dtype(), name_,
      "a gradient must have its parameter's dtype {}; got {}; convert it, or call zero_grad() "
      "after Module::to",
      parameter.dtype(), grad.dtype());
  check<DeviceError>(grad.device() == parameter.device(), name_,
                     "a gradient must be on its parameter's device {}; got {}", parameter.device(),
                     grad.device());
  if (grad_scale.defined())
    check<DeviceError>(grad_scale.device() == parameter.device(), name_,
                       "grad_scale must be on the parameters' device {}; got {}",
                       parameter.device(), grad_scale.device());
}

/// Makes what is missing, and moves what Module::to left behind.
void Optimizer::prepare(ParameterState& state, const Tensor& parameter,
                        const ParamGroup& group) const {
  const DType dtype = accumulate_dtype(parameter.dtype());
  const Device device = parameter.device();
  const auto fits = [&](const Tensor& tensor) {
    return tensor.dtype() == dtype && tensor.device() == device;
  };
  if (!needs_master(parameter.dtype()))
    state.master = Tensor();
  else if (!state.master.defined() || !fits(state.master))
    state.master =
        detail::copy_of(state.master.defined() ? state.master : parameter, dtype, device);
  for (const char* name : slot_names(group)) {
    Tensor& slot = state.slots[name];
    if (!slot.defined()) {
      slot = zeros(parameter.shape(), {.dtype = dtype, .device = device});
      state.fresh = true;
    } else if (!fits(slot)) {
      slot = detail::copy_of(slot, dtype, device);
    }
  }
}

std::vector<Optimizer::Batch> Optimizer::make_batches(const ParamGroup& group, std::size_t first) {
  std::vector<Batch> batches;
  const std::vector<const char*> names = slot_names(group);
  for (std::size_t i = 0; i < group.params.size(); ++i) {
    const Tensor& parameter = group.params[i];
    if (!parameter.grad().defined()) continue;
    ParameterState& state = states_[first + i];
    prepare(state, parameter, group);
    const std::int64_t step = state.step + 1;
    const auto fits = [&](const Batch& batch) {
      return batch.step == step && batch.fresh == state.fresh &&
             batch.params.front().device() == parameter.device();
    };
    auto batch = std::find_if(batches.begin(), batches.end(), fits);
    if (batch == batches.end()) {
      batches.emplace_back();
      batch = batches.end() - 1;
      batch->slots.resize(names.size());
      batch->step = step;
      batch->fresh = state.fresh;
    }
    batch->params.push_back(parameter);
    batch->masters.push_back(state.master.defined() ? state.master : parameter);
    batch->grads.push_back(parameter.grad().contiguous());
    for (std::size_t k = 0; k < names.size(); ++k)
      batch->slots[k].push_back(state.slots.at(names[k]));
  }
  return batches;
}

void Optimizer::step(const Tensor& grad_scale) {
  check(!grad_scale.defined() || (grad_scale.numel() == 1 &&
                                  (grad_scale.dtype() == float32 || grad_scale.dtype() == float64)),
        name_, "grad_scale must be one float32 or float64; got another tensor");
  const NoGradGuard no_grad;
  // Everything is checked before anything changes, or is made: masters are copies of this moment.
  for (ParamGroup& group : groups_) {
    complete(group);  // options may have been changed since
    for (const Tensor& parameter : group.params) check_gradient(parameter, grad_scale);
  }
  std::vector<std::vector<Batch>> batches;
  std::size_t first = 0;
  for (const ParamGroup& group : groups_) {
    batches.push_back(make_batches(group, first));
    first += group.params.size();
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const Batch& batch : batches[g]) {
      update(groups_[g], batch, grad_scale);
      for (const Tensor& parameter : batch.params) parameter.storage()->bump_version();
    }
  }
  first = 0;
  for (const ParamGroup& group : groups_) {
    for (std::size_t i = 0; i < group.params.size(); ++i) {
      if (!group.params[i].grad().defined()) continue;
      ++states_[first + i].step;
      states_[first + i].fresh = false;
    }
    first += group.params.size();
  }
}

StateDict Optimizer::state_dict() const {
  StateDict result;
  std::size_t index = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const ParamGroup& group = groups_[g];
    visit_options(group, [&](const char* option, const auto& value) {
      if (value.has_value()) result.emplace(group_key(g, option), to_tensor(*value));
    });
    result.emplace(group_key(g, "size"), tensor(static_cast<std::int64_t>(group.params.size())));
    for (std::size_t i = 0; i < group.params.size(); ++i, ++index) {
      const ParameterState& state = states_[index];
      if (state.step == 0) continue;
      result.emplace(state_key(index, "step"), tensor(state.step));
      if (state.master.defined()) result.emplace(state_key(index, "master"), state.master);
      for (const char* name : slot_names(group))
        if (const auto slot = state.slots.find(name); slot != state.slots.end())
          result.emplace(state_key(index, name), slot->second);
    }
  }
  return result;
}

void Optimizer::load_state_dict(const StateDict& source) {
  const std::string operation = fmt::format("{}.load_state_dict", name_);
  const char* where = operation.c_str();
  std::size_t used = 0;
  const auto take = [&](const std::string& key, const Shape& shape) -> const Tensor& {
    ++used;
    return detail::entry(source, key, shape, where);
  };
  std::vector<ParamGroup> groups = groups_;
  std::vector<ParameterState> states(states_.size());
  std::size_t index = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto size = static_cast<std::int64_t>(groups[g].params.size());
    const auto saved_size = take(group_key(g, "size"), {}).item<std::int64_t>();
    check(saved_size == size, where, "group {} must have {} parameters; got a state with {}", g,
          size, saved_size);
    visit_options(groups[g], [&](const char* option, auto& value) {
      if (!value.has_value()) return;
      const Shape shape = std::string_view(option) == "betas" ? Shape{2} : Shape{};
      from_tensor(take(group_key(g, option), shape), *value);
    });
    complete(groups[g]);  // checks the ranges
    for (const Tensor& parameter : groups[g].params) {
      ParameterState& state = states[index];
      const std::string prefix = state_key(index++, "");
      if (!source.contains(prefix + "step")) continue;
      state.step = take(prefix + "step", {}).item<std::int64_t>();
      check(state.step >= 1, where, "step counts must be positive; got {} for parameter {}",
            state.step, index - 1);
      const DType dtype = accumulate_dtype(parameter.dtype());
      const auto copy = [&](const std::string& name) {
        return detail::copy_of(take(prefix + name, parameter.shape()), dtype, parameter.device());
      };
      if (source.contains(prefix + "master")) state.master = copy("master");
      // All may be missing where the option that needs them was switched on after the last step:
      // prepare() makes them, as it would have without saving.
      const std::vector<const char*> names = slot_names(groups[g]);
      const bool has_slots = std::any_of(names.begin(), names.end(), [&](const char* name) {
        return source.contains(prefix + name);
      });
      if (has_slots)
        for (const char* name : names) state.slots[name] = copy(name);
    }
  }
  check(used == source.size(), where,
        "the state must fit these parameters; got {} entries where {} belong to them; it was saved "
        "by another "
        "optimizer or for another model",
        source.size(), used);
  groups_ = std::move(groups);
  states_ = std::move(states);
}

}  // namespace norma::optim
