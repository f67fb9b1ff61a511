// Module: the registry behind every layer and model. Layers derive from Layer<T> (nn/layer.h),
// which adds the call.
//
// A module is a plain struct that holds its parameters, buffers and children as members and
// registers each of them by name in its constructor:
//
//     struct Affine : nn::Layer<Affine> {
//       Tensor weight, bias;
//       nn::Dropout dropout{0.1};
//       explicit Affine(std::int64_t d) : weight(ones({d})), bias(zeros({d})) {
//         register_parameter("weight", weight, nn::ParameterKind::norm);
//         register_parameter("bias", bias, nn::ParameterKind::bias);
//         register_module("dropout", dropout);
//       }
//       Tensor forward(const Tensor& x) { return dropout(x * weight + bias); }
//     };
//
// The registry refers to the members themselves; therefore a module can be neither copied nor
// moved, and what a member is later assigned is what the registry reports. So weights are tied by
// assignment: `head.weight = embedding.weight;`.
#pragma once

#include "norma/nn/state_dict.h"

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace norma::nn {

class Module;

/// What a parameter is: optimizers decide by it (optim::weight_decay_groups), never by name or
/// rank.
enum class ParameterKind : std::uint8_t {
  matrix,     ///< weight of a linear map
  bias,       ///< added constant
  norm,       ///< gain or offset of a norm, whatever its shape
  embedding,  ///< lookup table
  scalar,     ///< single learned number, such as a temperature or gate
  sphere,     ///< matrix or table that is kept as unit vectors, as in nGPT: decay has no sense
};

struct NamedParameter {
  std::string name;
  Tensor tensor;
  ParameterKind kind;
};
struct NamedBuffer {
  std::string name;
  Tensor tensor;
  bool persistent;  ///< part of the state_dict
};
struct NamedModule {
  std::string name;
  Module* module;
};

/// Sees the first tensor argument before forward; a defined result replaces it.
using ForwardPreHook = std::function<Tensor(Module& module, const Tensor& input)>;
/// Sees the first tensor argument and the result after forward; a defined result replaces the
/// latter.
using ForwardHook =
    std::function<Tensor(Module& module, const Tensor& input, const Tensor& output)>;
/// Sees the gradients by the first tensor argument and by the result; a defined result replaces
/// grad_input.
using BackwardHook =
    std::function<Tensor(Module& module, const Tensor& grad_input, const Tensor& grad_output)>;

namespace detail {
struct ModuleHooks;
class HookedCall;

/// A hook that may return nothing as one that returns a Tensor.
template <class Hook, class F>
Hook as_hook(F hook) {
  return [hook = std::move(hook)](auto&... args) mutable -> Tensor {
    if constexpr (std::is_void_v<decltype(hook(args...))>) {
      hook(args...);
      return {};
    } else {
      return hook(args...);
    }
  };
}
}  // namespace detail

/// Base of all layers and models; see the head of this file.
class Module {
 public:
  Module();
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // -- registration: a name must be non-empty, without dots, new to this module; else ValueError
  /// Registers the member `tensor`, a floating-point leaf, and makes it collect gradients.
  void register_parameter(const std::string& name, Tensor& tensor, ParameterKind kind);
  /// Another kind for the parameter `name` of this module itself.
  void set_parameter_kind(const std::string& name, ParameterKind kind);
  /// Registers the member `tensor` as state that is not trained. Persistent ones are part of the
  /// state_dict.
  void register_buffer(const std::string& name, Tensor& tensor, bool persistent = true);
  /// Registers the member `child`.
  void register_module(const std::string& name, Module& child);

  // -- the registry: depth-first, own entries before those of children, as registered ---
  /// All parameters; a tensor that is registered more than once (tied) only under its first name.
  std::vector<NamedParameter> named_parameters() const;
  TensorList parameters() const;
  std::vector<NamedBuffer> named_buffers() const;
  TensorList buffers() const;
  /// Direct children.
  std::vector<NamedModule> named_children() const;
  std::vector<Module*> children() const;
  /// This module (named ""), then all below it; each once.
  std::vector<NamedModule> named_modules();
  std::vector<Module*> modules();
  /// Number of elements of all parameters, tied ones once.
  std::int64_t num_parameters(bool trainable_only = false) const;

  // -- state ----------------------------------------------------------------------------
  /// Parameters and persistent buffers, detached but on the same data; tied weights under each of
  /// their names.
  StateDict state_dict() const;
  /// Copies the values of `state` into this module, in place and with conversion of dtype and
  /// device, so that tied weights stay tied and optimizers keep their tensors. Throws ValueError,
  /// before anything is changed, with the full list of what does not fit: wrong shapes always;
  /// missing and unexpected names when `strict`.
  LoadReport load_state_dict(const StateDict& state, bool strict = true);

  // -- modes and conversions ------------------------------------------------------------
  bool is_training() const { return training_; }
  /// Sets the mode here and in all modules below. Dropout is active in training only.
  Module& train(bool mode = true);
  Module& eval() { return train(false); }
  /// Converts floating-point parameters, their gradients and buffers. The tensors stay the same
  /// objects with other data: tied weights stay tied, and an optimizer made before keeps working on
  /// them.
  Module& to(DType dtype);
  Module& to(const Device& device);
  /// Calls `f` with every module: children first, this one last. As torch.nn.Module.apply.
  Module& apply(const std::function<void(Module&)>& f);
  /// Removes the gradients, or sets them to zero in place.
  void zero_grad(bool set_to_none = true);
  Module& requires_grad_(bool requires_grad = true);

  // -- hooks: in the order of registration; details at the head of nn/layer.h -----------
  /// `hook(module, input)`, returning a Tensor or nothing.
  template <class F>
  RemovableHandle register_forward_pre_hook(F hook) {
    return add_forward_pre_hook(detail::as_hook<ForwardPreHook>(std::move(hook)));
  }
  /// `hook(module, input, output)`, returning a Tensor or nothing.
  template <class F>
  RemovableHandle register_forward_hook(F hook) {
    return add_forward_hook(detail::as_hook<ForwardHook>(std::move(hook)));
  }
  /// `hook(module, grad_input, grad_output)`, returning a Tensor or nothing.
  template <class F>
  RemovableHandle register_full_backward_hook(F hook) {
    return add_full_backward_hook(detail::as_hook<BackwardHook>(std::move(hook)));
  }

  /// Whether any hook is registered here: containers take fused paths around a child only where
  /// it has none.
  bool has_hooks() const;

  // -- text -----------------------------------------------------------------------------
  /// "Linear": the type's name without namespaces.
  virtual std::string type_name() const;
  /// What stands in the parentheses: "in_features=3, out_features=4, bias=True".
  virtual std::string extra_repr() const { return {}; }
  /// The tree of modules as PyTorch prints it.
  std::string str() const;

 private:
  friend class detail::HookedCall;

  struct Parameter {
    std::string name;
    Tensor* tensor;
    ParameterKind kind;
  };
  struct Buffer {
    std::string name;
    Tensor* tensor;
    bool persistent;
  };
  struct Child {
    std::string name;
    Module* module;
  };

  void check_name(const std::string& name, const char* operation) const;
  /// Calls `f(prefix, module)` for this module and all below it, also more than once for shared
  /// ones.
  template <class F>
  void walk(const std::string& prefix, const F& f) const;
  void convert(const std::function<Tensor(const Tensor&)>& f);
  RemovableHandle add_forward_pre_hook(ForwardPreHook hook);
  RemovableHandle add_forward_hook(ForwardHook hook);
  RemovableHandle add_full_backward_hook(BackwardHook hook);
  detail::ModuleHooks& hooks();

  std::vector<Parameter> parameters_;
  std::vector<Buffer> buffers_;
  std::vector<Child> children_;
  std::shared_ptr<detail::ModuleHooks> hooks_;  ///< null until the first hook
  bool training_ = true;
};

/// Prints `module.str()`.
std::ostream& operator<<(std::ostream& stream, const Module& module);

/// "matrix", "bias", "norm", "embedding", "scalar", "sphere".
std::string_view to_string(ParameterKind kind);

}  // namespace norma::nn
