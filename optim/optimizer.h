// Optimizer: parameters in groups, their state, and the step. Base of AdamW and SGD.
//
//     AdamW optimizer(model.parameters(), {.lr = 3e-4});
//     for (…) {
//       optimizer.zero_grad();
//       loss(model(x), y).backward();
//       clip_grad_norm_(model.parameters(), 1.0);
//       optimizer.step();
//     }
//
// 16-bit parameters are updated in float32 masters, which the optimizer keeps and from which the
// parameter is rounded after each step: updates smaller than half a unit in the last place would be
// lost otherwise. Averages are float32 for them, too.
#pragma once

#include "norma/optim/param_group.h"
#include "norma/optim/state_dict.h"

#include <string>
#include <vector>

namespace norma::optim {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates all parameters that have a gradient; the others, and their state, stay as they are.
  /// Nothing is recorded; versions are bumped, so that a later backward through values saved before
  /// the step is an error. `grad_scale`: undefined, or a one-element tensor (float32 or float64) on
  /// the parameters' device that multiplies every gradient (the inverse of a loss scale). Throws
  /// ShapeError, DTypeError or DeviceError for a gradient that does not fit its parameter, and
  /// changes nothing then.
  void step(const Tensor& grad_scale = {});

  /// Removes all gradients; with `set_to_none` false sets them to zero in place.
  void zero_grad(bool set_to_none = true);

  /// The groups, every option of this optimizer filled in. Options may be changed at any time;
  /// parameters may not.
  std::vector<ParamGroup>& param_groups() { return groups_; }
  const std::vector<ParamGroup>& param_groups() const { return groups_; }

  /// Adds a group. Throws ValueError for a parameter that is undefined, no leaf, not contiguous or
  /// already in a group; DTypeError for one that is not floating point; ValueError for options out
  /// of range or unknown to this optimizer.
  void add_param_group(ParamGroup group);

  /// Everything the next step depends on besides parameters and gradients, under
  /// "state.{index}.{name}" with parameters numbered over all groups, and
  /// "param_groups.{index}.{option}". The tensors are the optimizer's own: clone or save them
  /// before the next step.
  StateDict state_dict() const;
  /// Restores a state_dict of an optimizer of the same kind over parameters of the same shapes:
  /// copies values, changes options. Throws ValueError, and changes nothing, where it does not fit.
  void load_state_dict(const StateDict& state);

 protected:
  /// `name` stands in messages: "adamw".
  explicit Optimizer(const char* name) : name_(name) {}

  /// Tensors that go through one call of the kernel: one device, one step count, one group.
  struct Batch {
    TensorList params;
    TensorList masters;  ///< float32 for 16-bit parameters, else the parameters themselves
    TensorList grads;    ///< contiguous
    std::vector<TensorList> slots;  ///< by slot_names(), in the accumulate type
    std::int64_t step = 0;          ///< counts from 1
    bool fresh = false;             ///< slots hold no step yet, and are zero
  };

  /// Adds the groups of a constructor; throws ValueError when they hold no parameter.
  void add_param_groups(const std::vector<ParamGroup>& groups);
  /// Sets options that `group` leaves open; throws ValueError for those that are unknown or out of
  /// range.
  virtual void complete(ParamGroup& group) const = 0;
  /// Which tensors of its shape a parameter of `group` needs.
  virtual std::vector<const char*> slot_names(const ParamGroup& group) const = 0;
  virtual void update(const ParamGroup& group, const Batch& batch, const Tensor& grad_scale) = 0;

  /// Throws ValueError unless `holds`: "[adamw] lr must be ≥ 0; got -1".
  void check_option(bool holds, const char* option, const char* domain, double value) const;
  /// Throws ValueError for an option that this optimizer does not have.
  template <class T>
  void check_absent(const std::optional<T>& option, const char* option_name) const {
    check(!option.has_value(), name_, "a group must have options of this optimizer only; got {}",
          option_name);
  }

 private:
  struct ParameterState {
    std::int64_t step = 0;
    Tensor master;  ///< 16-bit parameters only
    std::map<std::string, Tensor> slots;
    bool fresh = false;  ///< slots hold no step yet
  };

  void check_gradient(const Tensor& parameter, const Tensor& grad_scale) const;
  void prepare(ParameterState& state, const Tensor& parameter, const ParamGroup& group) const;
  std::vector<Batch> make_batches(const ParamGroup& group, std::size_t first);

  const char* name_;
  std::vector<ParamGroup> groups_;
  std::vector<ParameterState> states_;  ///< by parameter, over all groups
};

}  // namespace norma::optim
