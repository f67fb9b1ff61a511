// Layer<T>: a Module that is called. Derive from it and write `forward`; call the object, so that
// hooks run:
//
//     struct Residual : nn::Layer<Residual> {
//       nn::Linear fc;
//       explicit Residual(std::int64_t d) : fc(d, d) { register_module("fc", fc); }
//       Tensor forward(const Tensor& x) { return x + gelu(fc(x)); }
//     };
//     Residual layer(64);
//     Tensor y = layer(x);
//
// `forward` takes whatever it likes, default arguments included, and returns whatever it likes; an
// absent tensor is written `Tensor()`. Hooks see its first argument and its result if these are
// tensors, else an undefined tensor. One call with hooks runs:
//
//   1. forward-pre hooks, each sees the input that the one before left;
//   2. forward;
//   3. forward hooks, each sees the output that the one before left;
//
// and in the backward pass, once the gradients by the final output and by the final input are
// complete,
//
//   4. full-backward hooks, each sees the grad_input that the one before left; grad_output cannot
//   be
//      replaced. Where the input does not require grad they run once grad_output is complete, with
//      an undefined grad_input.
//
// Each kind runs in the order of registration. A hook that is removed between forward and backward
// still sees that backward. This is what torch.nn.Module does. Without hooks a call costs nothing
// extra.
#pragma once

#include "norma/nn/module.h"

namespace norma::nn {

namespace detail {

/// One call of a module with hooks: made before forward, finished after it.
class HookedCall {
 public:
  HookedCall(Module& module, const Tensor& input);
  /// The input that forward must use.
  const Tensor& input() const { return input_; }
  /// What the caller gets for forward's result.
  Tensor finish(Tensor output);

 private:
  struct Backward;
  Module& module_;
  std::shared_ptr<ModuleHooks> hooks_;
  Tensor input_;
  std::shared_ptr<Backward> backward_;  ///< null without full-backward hooks
};

}  // namespace detail

/// Base of layers; see the head of this file.
template <class Derived>
class Layer : public Module {
 public:
  // Self is Derived, but clang 14 looks at it only when it is complete.
  template <class... Args, class Self = Derived>
  requires requires(Self& self, Args&&... args) { self.forward(std::forward<Args>(args)...); }
  auto operator()(Args&&... args) {
    Derived& self = static_cast<Derived&>(*this);
    if (!has_hooks()) [[likely]]
      return self.forward(std::forward<Args>(args)...);
    return call_with_hooks(self, std::forward<Args>(args)...);
  }

 private:
  template <class First, class... Rest>
  auto call_with_hooks(Derived& self, First&& first, Rest&&... rest) {
    if constexpr (std::is_same_v<std::decay_t<First>, Tensor>) {
      detail::HookedCall call(*this, first);
      return finish(call, self.forward(call.input(), std::forward<Rest>(rest)...));
    } else {
      detail::HookedCall call(*this, {});
      return finish(call, self.forward(std::forward<First>(first), std::forward<Rest>(rest)...));
    }
  }
  auto call_with_hooks(Derived& self) {
    detail::HookedCall call(*this, {});
    return finish(call, self.forward());
  }
  template <class Result>
  static Result finish(detail::HookedCall& call, Result result) {
    if constexpr (std::is_same_v<Result, Tensor>) {
      return call.finish(std::move(result));
    } else {
      call.finish({});
      return result;
    }
  }
};

}  // namespace norma::nn
