// Hooks of modules: their lists, and a call that runs them.
#include "norma/nn/layer.h"

#include "norma/core/grad_mode.h"
#include "norma/core/required_ops.h"

#include <list>

namespace norma::nn {

namespace detail {

/// Hooks of one kind in the order of registration.
template <class Hook>
struct HookTable {
  std::uint64_t next_id = 0;
  std::list<std::pair<std::uint64_t, Hook>> entries;

  /// A copy to iterate over: hooks may add and remove hooks, themselves included.
  std::vector<Hook> snapshot() const {
    std::vector<Hook> hooks;
    for (const auto& [id, hook] : entries) hooks.push_back(hook);
    return hooks;
  }
};

struct ModuleHooks {
  HookTable<ForwardPreHook> forward_pre;
  HookTable<ForwardHook> forward;
  HookTable<BackwardHook> backward;
};

namespace {

template <class Hook>
RemovableHandle add_to(const std::shared_ptr<ModuleHooks>& owner,
                       HookTable<Hook> ModuleHooks::*table, Hook hook) {
  HookTable<Hook>& hooks = (*owner).*table;
  const std::uint64_t id = hooks.next_id++;
  hooks.entries.emplace_back(id, std::move(hook));
  return RemovableHandle([weak = std::weak_ptr(owner), table, id] {
    if (const auto alive = weak.lock())
      std::erase_if(((*alive).*table).entries,
                    [&](const auto& entry) { return entry.first == id; });
  });
}

}  // namespace

/// What the tensor hooks of one call share. They hold it, so it lives as long as the graph.
struct HookedCall::Backward {
  Module& module;
  std::weak_ptr<ModuleHooks> alive;  ///< expires with the module, and then no hook is called
  std::vector<BackwardHook> hooks;
  Tensor grad_output = {};

  Tensor run(Tensor grad_input) {
    const Tensor gradient = std::exchange(grad_output, {});
    if (alive.expired()) return grad_input;
    for (const BackwardHook& hook : hooks)
      if (Tensor replaced = hook(module, grad_input, gradient); replaced.defined())
        grad_input = std::move(replaced);
    return grad_input;
  }
};

HookedCall::HookedCall(Module& module, const Tensor& input)
    : module_(module), hooks_(module.hooks_), input_(input) {
  for (const ForwardPreHook& hook : hooks_->forward_pre.snapshot())
    if (Tensor replaced = hook(module_, input_); replaced.defined()) input_ = std::move(replaced);
  if (hooks_->backward.entries.empty() || !GradMode::is_enabled()) return;
  backward_ = std::shared_ptr<Backward>(new Backward{module_, hooks_, hooks_->backward.snapshot()});
  if (input_.defined() && input_.requires_grad()) {
    // An alias of its own, so that only what flows through this module arrives at the hook.
    input_ = norma::detail::alias(input_);
    input_.register_hook(
        [backward = backward_](const Tensor& gradient) { return backward->run(gradient); });
  }
}

Tensor HookedCall::finish(Tensor output) {
  for (const ForwardHook& hook : hooks_->forward.snapshot())
    if (Tensor replaced = hook(module_, input_, output); replaced.defined())
      output = std::move(replaced);
  if (!backward_ || !output.defined() || !output.requires_grad()) return output;
  output = norma::detail::alias(output);
  const bool input_follows = input_.defined() && input_.requires_grad();
  output.register_hook([backward = backward_, input_follows](const Tensor& gradient) -> Tensor {
    backward->grad_output = gradient;
    if (!input_follows) backward->run({});
    return {};
  });
  return output;
}

}  // namespace detail

bool Module::has_hooks() const {
  return hooks_ && !(hooks_->forward_pre.entries.empty() && hooks_->forward.entries.empty() &&
                     hooks_->backward.entries.empty());
}

detail::ModuleHooks& Module::hooks() {
  if (!hooks_) hooks_ = std::make_shared<detail::ModuleHooks>();
  return *hooks_;
}

RemovableHandle Module::add_forward_pre_hook(ForwardPreHook hook) {
  hooks();
  return detail::add_to(hooks_, &detail::ModuleHooks::forward_pre, std::move(hook));
}
RemovableHandle Module::add_forward_hook(ForwardHook hook) {
  hooks();
  return detail::add_to(hooks_, &detail::ModuleHooks::forward, std::move(hook));
}
RemovableHandle Module::add_full_backward_hook(BackwardHook hook) {
  hooks();
  return detail::add_to(hooks_, &detail::ModuleHooks::backward, std::move(hook));
}

}  // namespace norma::nn
