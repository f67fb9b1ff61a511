#include "norma/core/node.h"

#include "norma/core/engine.h"
#include "norma/core/grad_mode.h"
#include "norma/core/required_ops.h"

#include <atomic>

namespace norma {

namespace {

std::atomic<std::int64_t> live_nodes{0};
std::atomic<std::uint64_t> next_sequence{1};

/// The node at a leaf: adds arriving gradients to `.grad()`. Owned by the nodes that use the leaf,
/// which it keeps alive.
class GradAccumulator final : public Node {
 public:
  explicit GradAccumulator(const Tensor& leaf) : leaf_(leaf) {
    outputs.push_back({leaf.shape(), leaf.dtype(), leaf.device()});
  }
  std::string name() const override { return "accumulate_grad"; }

  TensorList apply(TensorList grads) override {
    Tensor gradient = std::move(grads[0]);
    grads.clear();
    if (!gradient.defined()) return {};
    const TensorMeta& then = outputs[0];
    check<AutogradError>(
        leaf_.shape() == then.shape && leaf_.dtype() == then.dtype && leaf_.device() == then.device,
        "backward",
        "a leaf must keep shape, dtype and device from forward to backward; got {} {} on {} in "
        "the forward, {} {} on {} now; convert a module before its forward, or run it again",
        then.dtype, then.shape, then.device, leaf_.dtype(), leaf_.shape(), leaf_.device());
    Tensor& grad = leaf_.impl()->meta().grad;
    if (!grad.defined()) {
      // Take the buffer only as its sole owner, so that nobody sees later additions.
      const bool sole_owner = gradient.impl().use_count() == 1 &&
                              gradient.storage().use_count() == 1 && gradient.is_contiguous();
      if (sole_owner && (GradMode::is_enabled() || !gradient.requires_grad())) {
        grad = std::move(gradient);
      } else if (GradMode::is_enabled()) {
        grad = gradient.clone();  // under create_graph its history belongs to it
      } else {
        grad = detail::make_tensor(gradient.shape(), gradient.dtype(), gradient.device());
        detail::copy(grad, gradient);
      }
    } else if (GradMode::is_enabled() || grad.requires_grad() || !grad.is_contiguous()) {
      grad = detail::add(grad, gradient);
    } else {
      detail::accumulate(grad, gradient.contiguous());
    }
    if (AnomalyMode::is_enabled())
      detail::check_anomaly("backward", "sum in the .grad() of a leaf", {grad}, {});
    return {};
  }

 private:
  Tensor leaf_;
};

}  // namespace

Node::Node() : sequence_(next_sequence.fetch_add(1, std::memory_order_relaxed)) {
  live_nodes.fetch_add(1, std::memory_order_relaxed);
}
Node::~Node() { live_nodes.fetch_sub(1, std::memory_order_relaxed); }

void Node::move_to_end() { sequence_ = next_sequence.fetch_add(1, std::memory_order_relaxed); }

std::int64_t Node::live_count() { return live_nodes.load(std::memory_order_relaxed); }

void delete_node(Node* node) {
  // The first deletion on this thread works off a list; every deletion below it only adds to the
  // list.
  thread_local std::vector<Node*>* pending = nullptr;
  if (pending != nullptr) {
    pending->push_back(node);
    return;
  }
  std::vector<Node*> list{node};
  pending = &list;
  while (!list.empty()) {
    Node* next = list.back();
    list.pop_back();
    delete next;
  }
  pending = nullptr;
}

Edge gradient_edge(const Tensor& tensor) {
  if (!tensor.requires_grad()) return {};
  AutogradMeta& meta = tensor.impl()->meta();
  if (meta.grad_fn) return {meta.grad_fn, meta.output_nr};
  std::shared_ptr<Node> accumulator = meta.grad_accumulator.lock();
  if (!accumulator) {
    accumulator = make_node<GradAccumulator>(tensor);
    meta.grad_accumulator = accumulator;
  }
  // The leaf's hooks live on the leaf; the node reads them when it runs.
  accumulator->hooks.assign(1, meta.hooks);
  return {accumulator, 0};
}

}  // namespace norma
