// Function: an operation with a hand-written backward. Every operation of norma is one, and so are
// users' own.
//
//     struct Swish : Function<Swish> {
//       static constexpr const char* name = "swish";  // optional
//       static Tensor forward(Context& ctx, const Tensor& x, double beta) {
//         ctx.save_for_backward({x});
//         ctx.set("beta", beta);
//         return x * sigmoid(x * beta);
//       }
//       static TensorList backward(Context& ctx, const Tensor& grad_output) {
//         const Tensor x = ctx.saved_tensor(0);
//         const Tensor s = sigmoid(x * ctx.get<double>("beta"));
//         return {grad_output * (s + x * ctx.get<double>("beta") * s * (1.0 - s))};
//       }
//     };
//     Tensor y = Swish::apply(x, 1.5);
//
// `forward` runs with recording off. It takes Tensors, TensorLists and anything else, and returns a
// Tensor or a TensorList; `backward` takes a Tensor for one output or `const TensorList&` for
// several, and returns one gradient for each tensor argument in order (a TensorList argument counts
// each of its tensors), undefined where none is needed. As in PyTorch it may also return one for
// each argument, undefined for those that are no tensors. The engine sums over broadcast dimensions
// and checks count, shape, dtype and device.
//
// `backward` is made of differentiable operations: then grad(…, {.create_graph = true}) gives
// higher derivatives. One that calls a kernel instead must ask GradMode::is_enabled() and use
// composite_backward (core/autograd.h).
#pragma once

#include "norma/core/autograd.h"
#include "norma/core/saved_tensor.h"

#include <any>
#include <cmath>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace norma {

/// What an operation keeps from forward to backward.
class Context {
 public:
  /// Keeps tensors for backward; to be called in forward, once. Inputs and outputs only: others may
  /// leak.
  void save_for_backward(TensorList tensors) { to_save_ = std::move(tensors); }
  /// The kept tensors; throws AutogradError when one was changed in place or already released.
  TensorList saved_tensors() const;
  Tensor saved_tensor(std::size_t index) const;

  /// Keeps any other value under a name.
  template <class T>
  void set(const char* key, T value) {
    values_.emplace_back(key, std::any(std::move(value)));
  }
  /// The value kept under `key`; throws AutogradError when there is none of this type.
  template <class T>
  T get(const char* key) const {
    const T* value = std::any_cast<T>(find(key));
    check<AutogradError>(
        value != nullptr, name_.c_str(),
        "no value \"{}\" of this type was kept in forward; use the type that set() got", key);
    return *value;
  }

  /// Whether the gradient of tensor argument `index` will be used; valid in forward and in
  /// backward.
  bool needs_input_grad(std::size_t index) const;
  /// Whether this call of forward is recorded: nothing has to be kept otherwise.
  bool is_recording() const { return recording_; }
  /// Declares that forward changed these inputs in place and returns them.
  void mark_dirty(const TensorList& tensors) { dirty_ = tensors; }
  /// Declares outputs that have no derivative, such as indices.
  void mark_non_differentiable(const TensorList& tensors) { non_differentiable_ = tensors; }
  /// Whether backward gets zeros (default) or undefined tensors for outputs that no gradient
  /// reached.
  void set_materialize_grads(bool materialize) { materialize_ = materialize; }

 private:
  template <class>
  friend class FunctionNode;
  friend struct FunctionRecorder;

  const std::any* find(const char* key) const;

  std::string name_;
  std::weak_ptr<Node> node_;
  bool recording_ = false;
  bool given_infinity_ = false;
  bool materialize_ = true;
  bool released_ = false;
  std::vector<bool> needs_input_grad_;
  TensorList to_save_;
  TensorList dirty_;
  TensorList non_differentiable_;
  std::vector<SavedTensor> saved_;
  std::vector<std::pair<const char*, std::any>> values_;
};

/// The parts of Function<T>::apply that do not depend on T.
struct FunctionRecorder {
  /// Name of a Function type: its `name`, else its C++ name.
  static std::string demangle(const char* type_name);
  /// Prepares ctx; returns whether to record.
  static bool should_record(const TensorList& inputs);
  /// `given_infinity`: a number among the arguments is infinite.
  static void begin(Context& ctx, std::string name, const TensorList& inputs, bool record,
                    bool given_infinity);
  /// Connects outputs to `node` (null: not recorded) and turns what was saved into SavedTensors.
  static void finish(Context& ctx, const std::shared_ptr<Node>& node, const TensorList& inputs,
                     TensorList& outputs);
  /// Throws AutogradError where `tensor` must not change in place now: a leaf that requires grad, a
  /// view, or a tensor with views in a graph. `inputs`: those of the operation. For callers that
  /// check before they write.
  static void check_in_place(const char* operation, const Tensor& tensor, const TensorList& inputs);
  static TensorList materialize(const Context& ctx, const Node& node, TensorList grads);
  static void check_not_released(const Context& ctx);
  static void release(Context& ctx);
  /// Drops the entries of arguments that are not tensors, when there are any.
  static TensorList select_tensor_grads(const Context& ctx, TensorList grads,
                                        const std::vector<bool>& argument_is_tensor,
                                        std::size_t tensor_count);
};

/// The node of Function `T`.
template <class T>
class FunctionNode final : public Node {
 public:
  std::string name() const override { return context.name_; }

  TensorList apply(TensorList grad_outputs) override {
    FunctionRecorder::check_not_released(context);
    grad_outputs = FunctionRecorder::materialize(context, *this, std::move(grad_outputs));
    TensorList grads;
    if constexpr (std::is_invocable_v<decltype(&T::backward), Context&, const TensorList&>)
      grads = T::backward(context, grad_outputs);
    else
      grads = T::backward(context, grad_outputs.at(0));
    return FunctionRecorder::select_tensor_grads(context, std::move(grads), argument_is_tensor,
                                                 edges.size());
  }
  void release_saved() override { FunctionRecorder::release(context); }

  Context context;
  std::vector<bool> argument_is_tensor;  ///< per element of the flattened argument list
};

/// Base of operations; see the head of this file.
template <class T>
struct Function {
  template <class... Args>
  static auto apply(Args&&... args) {
    TensorList inputs;
    std::vector<bool> is_tensor;
    (collect(args, inputs, is_tensor), ...);
    const bool given_infinity = (is_infinite(args) || ...);
    const bool record = FunctionRecorder::should_record(inputs);
    std::shared_ptr<FunctionNode<T>> node;
    Context unrecorded;
    if (record) {
      static_assert(
          requires { &T::backward; },
          "a Function needs a backward; mark outputs without derivative by "
          "ctx.mark_non_differentiable");
      node = make_node<FunctionNode<T>>();
      node->argument_is_tensor = std::move(is_tensor);
    }
    Context& ctx = record ? node->context : unrecorded;
    FunctionRecorder::begin(ctx, name_of(), inputs, record, given_infinity);

    using Result = decltype(T::forward(ctx, std::forward<Args>(args)...));
    constexpr bool single = std::is_same_v<std::decay_t<Result>, Tensor>;
    static_assert(single || std::is_same_v<std::decay_t<Result>, TensorList>,
                  "forward must return Tensor or TensorList");
    TensorList outputs;
    {
      NoGradGuard no_grad;
      if constexpr (single)
        outputs.push_back(T::forward(ctx, std::forward<Args>(args)...));
      else
        outputs = T::forward(ctx, std::forward<Args>(args)...);
    }
    FunctionRecorder::finish(ctx, node, inputs, outputs);
    if constexpr (single)
      return std::move(outputs[0]);
    else
      return outputs;
  }

 private:
  static std::string name_of() {
    if constexpr (requires { T::name; })
      return T::name;
    else
      return FunctionRecorder::demangle(typeid(T).name());
  }
  template <class Arg>
  static void collect(const Arg& arg, TensorList& inputs, std::vector<bool>& is_tensor) {
    if constexpr (std::is_same_v<Arg, Tensor>) {
      inputs.push_back(arg);
      is_tensor.push_back(true);
    } else if constexpr (std::is_same_v<Arg, TensorList>) {
      inputs.insert(inputs.end(), arg.begin(), arg.end());
      is_tensor.insert(is_tensor.end(), arg.size(), true);
    } else {
      is_tensor.push_back(false);
    }
  }
  template <class Arg>
  static bool is_infinite(const Arg& arg) {
    if constexpr (std::is_floating_point_v<Arg>)
      return std::isinf(arg);
    else
      return false;
  }
};

}  // namespace norma
