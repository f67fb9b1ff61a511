// The engine: replays the reachable part of the tape in reverse.
//
// Nodes carry their position on the tape, and a node's inputs always stand before it. So the order
// of the run is the positions sorted downwards; nothing recurses and no dependency counts are
// needed.
#include "norma/core/engine.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/core/required_ops.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace norma {

namespace {

/// What one run knows of one node.
struct NodeTask {
  std::shared_ptr<Node> node;
  bool visited = false;
  bool needed = false;      ///< a target depends on it
  TensorList gradients;     ///< of its outputs, as far as they arrived
  std::vector<bool> owned;  ///< gradients[i] is a sum that only this run holds
  std::vector<std::pair<std::uint32_t, std::size_t>> captures;  ///< (output, index of the target)
};

struct Frame {
  const Node* node = nullptr;
  std::vector<bool> needs;
};
thread_local Frame current_frame;

class FrameGuard {
 public:
  explicit FrameGuard(Frame frame) : previous_(std::exchange(current_frame, std::move(frame))) {}
  ~FrameGuard() { current_frame = std::move(previous_); }
  FrameGuard(const FrameGuard&) = delete;
  FrameGuard& operator=(const FrameGuard&) = delete;

 private:
  Frame previous_;
};

std::string describe(const TensorMeta& meta) {
  return fmt::format("shape {}, {}, {}", meta.shape, meta.dtype, meta.device);
}

/// One backward run over a graph.
class Run {
 public:
  Run(bool accumulate, bool retain_graph, bool create_graph)
      : accumulate_(accumulate), retain_graph_(retain_graph), create_graph_(create_graph) {}

  /// Registers a tensor whose gradient is wanted.
  void add_target(const Edge& edge, std::size_t index) {
    NodeTask& task = task_of(edge.node);
    task.needed = true;
    task.captures.emplace_back(edge.output, index);
    oldest_target_ = std::min(oldest_target_, edge.node->sequence());
    target_count_ = std::max(target_count_, index + 1);
  }

  void add_root(const Edge& edge, const Tensor& gradient) {
    task_of(edge.node);
    roots_.emplace_back(edge, gradient);
  }

  TensorList execute() {
    const std::vector<NodeTask*> order = plan();
    captured_.resize(target_count_);
    for (auto& [edge, gradient] : roots_) deliver(edge, gradient, false);
    roots_.clear();
    const GradModeGuard mode(create_graph_);
    for (NodeTask* task : order) run(*task);
    return std::move(captured_);
  }

 private:
  NodeTask& task_of(const std::shared_ptr<Node>& node) {
    NodeTask& task = tasks_[node.get()];
    if (!task.node) task.node = node;
    return task;
  }

  /// All nodes reachable from the roots, in the order of the run; marks those that lead to a
  /// target.
  std::vector<NodeTask*> plan() {
    std::vector<NodeTask*> order;
    const auto visit = [&](const Edge& edge) {
      NodeTask& task = task_of(edge.node);
      if (!std::exchange(task.visited, true)) order.push_back(&task);
    };
    for (const auto& [edge, gradient] : roots_) visit(edge);
    for (std::size_t next = 0; next < order.size(); ++next) {
      for (const Edge& edge : order[next]->node->edges) {
        // Nothing before the oldest target on the tape can lead to one.
        if (!edge || (!accumulate_ && edge.node->sequence() < oldest_target_)) continue;
        visit(edge);
      }
    }
    std::sort(order.begin(), order.end(), [](const NodeTask* a, const NodeTask* b) {
      return a->node->sequence() > b->node->sequence();
    });
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      NodeTask& task = **it;
      if (accumulate_) task.needed = true;
      for (const Edge& edge : task.node->edges) {
        if (task.needed) break;
        if (const auto found = tasks_.find(edge.node.get()); edge && found != tasks_.end())
          task.needed = found->second.needed;
      }
    }
    return order;
  }

  bool is_needed(const Edge& edge) const {
    if (!edge) return false;
    const auto found = tasks_.find(edge.node.get());
    return found != tasks_.end() && found->second.needed;
  }

  /// Adds `gradient` to what arrived at `edge`.
  void deliver(const Edge& edge, Tensor gradient, bool owned) {
    NodeTask& task = tasks_.at(edge.node.get());
    const std::size_t count = task.node->outputs.size();
    if (task.gradients.empty()) {
      task.gradients.resize(count);
      task.owned.resize(count, false);
    }
    Tensor& sum = task.gradients[edge.output];
    if (!sum.defined()) {
      sum = std::move(gradient);
      task.owned[edge.output] = owned;
      return;
    }
    // In place only into a sum that this run made itself: the first gradient may be shared with
    // anyone. The check below is of this sum; that of the operation would blame an "add".
    const bool anomaly = AnomalyMode::is_enabled();
    const DetectAnomalyGuard off(false);
    if (task.owned[edge.output] && !create_graph_) {
      detail::accumulate(sum, gradient.contiguous());
    } else {
      sum = detail::add(sum, gradient);
      task.owned[edge.output] = true;
    }
    if (anomaly) detail::check_anomaly(edge.node->name(), "sum of arriving gradients", {sum}, {});
  }

  void run_hooks(NodeTask& task) {
    Node& node = *task.node;
    for (std::size_t i = 0; i < node.hooks.size() && i < task.gradients.size(); ++i) {
      if (!node.hooks[i] || !task.gradients[i].defined()) continue;
      // A copy of the list, so that a hook may remove itself.
      const auto hooks = node.hooks[i]->hooks;
      for (const auto& [id, hook] : hooks) {
        Tensor replaced = hook(task.gradients[i]);
        if (!replaced.defined()) continue;
        task.gradients[i] =
            validate(std::move(replaced), node.outputs[i], "a tensor hook of " + node.name(), i);
      }
    }
    for (std::size_t i = 0; i < node.retained.size() && i < task.gradients.size(); ++i) {
      const auto impl = node.retained[i].lock();
      if (!impl || !task.gradients[i].defined()) continue;
      const Tensor gradient =
          create_graph_ ? task.gradients[i] : detail::shallow_copy(task.gradients[i]);
      Tensor& kept = impl->meta().grad;
      kept = kept.defined() ? detail::add(kept, gradient) : gradient;
    }
  }

  void run(NodeTask& task) {
    if (!task.needed || task.gradients.empty()) return;
    Node& node = *task.node;
    run_hooks(task);
    for (const auto& [output, index] : task.captures) captured_[index] = task.gradients[output];
    const bool leads_on = std::any_of(node.edges.begin(), node.edges.end(),
                                      [&](const Edge& edge) { return is_needed(edge); });
    const bool is_leaf = node.edges.empty();
    if (is_leaf ? !accumulate_ : !leads_on) {
      task.gradients.clear();
      return;
    }
    const TensorList arrived = AnomalyMode::is_enabled() ? task.gradients : TensorList();
    TensorList gradients = apply(node, std::move(task.gradients));
    task.gradients.clear();
    if (!retain_graph_) node.release_saved();
    check<AutogradError>(gradients.size() == node.edges.size(), node.name().c_str(),
                         "backward must return {} gradients, one per tensor input; got {}",
                         node.edges.size(), gradients.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Edge& edge = node.edges[i];
      if (!gradients[i].defined() || !is_needed(edge)) continue;
      Tensor gradient =
          validate(std::move(gradients[i]), edge.node->outputs[edge.output], node.name(), i);
      if (AnomalyMode::is_enabled())
        detail::check_anomaly(node.name(), "backward", {gradient}, arrived);
      deliver(edge, std::move(gradient), false);
    }
  }

  TensorList apply(Node& node, TensorList gradients) {
    Frame frame{&node, {}};
    frame.needs.reserve(node.edges.size());
    for (const Edge& edge : node.edges) frame.needs.push_back(is_needed(edge));
    const FrameGuard guard(std::move(frame));
    return node.apply(std::move(gradients));
  }

  /// Brings a returned gradient to the shape and dtype of the tensor it belongs to, or says why it
  /// cannot.
  static Tensor validate(Tensor gradient, const TensorMeta& meta, const std::string& name,
                         std::size_t index) {
    check<AutogradError>(gradient.device() == meta.device, name.c_str(),
                         "gradient {} must be on the device of its tensor ({}); got {}", index,
                         describe(meta), gradient.device());
    check<AutogradError>(gradient.is_floating_point(), name.c_str(),
                         "gradient {} must be floating-point ({}); got {}", index, describe(meta),
                         gradient.dtype());
    if (gradient.shape() != meta.shape) {
      check<AutogradError>(
          is_expandable_to(meta.shape, gradient.shape()), name.c_str(),
          "gradient {} must have the shape of its tensor, or one that it broadcasts to ({}); got "
          "shape {}; check what backward returns",
          index, describe(meta), gradient.shape());
      gradient = detail::sum_to_size(gradient, meta.shape);
    }
    if (gradient.dtype() != meta.dtype) gradient = detail::cast(gradient, meta.dtype);
    return gradient;
  }

  bool accumulate_;
  bool retain_graph_;
  bool create_graph_;
  std::unordered_map<Node*, NodeTask> tasks_;
  std::vector<std::pair<Edge, Tensor>> roots_;
  std::uint64_t oldest_target_ = std::numeric_limits<std::uint64_t>::max();
  std::size_t target_count_ = 0;
  TensorList captured_;
};

/// Puts outputs and their gradients into `run`; fills in ones for scalars.
void add_roots(Run& run, const char* name, const TensorList& tensors, const TensorList& gradients) {
  check<AutogradError>(!tensors.empty(), name, "needs at least one tensor to start from; got none");
  check<AutogradError>(gradients.empty() || gradients.size() == tensors.size(), name,
                       "needs one gradient per tensor, or none; got {} gradients for {} tensors",
                       gradients.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    check<AutogradError>(tensor.defined(), name,
                         "tensor {} must be defined; got an undefined tensor", i);
    check<AutogradError>(
        tensor.requires_grad(), name,
        "tensor {} must require grad; got one without history; was it computed under NoGradGuard, "
        "detached, or from inputs without requires_grad_()?",
        i);
    Tensor gradient = gradients.empty() ? Tensor() : gradients[i];
    if (!gradient.defined()) {
      check<AutogradError>(tensor.numel() == 1, name,
                           "a tensor of more than one element needs a gradient; got shape {} and "
                           "none; reduce it with "
                           "sum() or mean(), or pass the gradient",
                           tensor.shape());
      gradient = ones_like(tensor);
    }
    check<AutogradError>(gradient.shape() == tensor.shape(), name,
                         "gradient {} must have the shape of its tensor {}; got {}", i,
                         tensor.shape(), gradient.shape());
    check<AutogradError>(
        gradient.dtype() == tensor.dtype() && gradient.device() == tensor.device(), name,
        "gradient {} must have dtype and device of its tensor ({}, {}); got {}, {}", i,
        tensor.dtype(), tensor.device(), gradient.dtype(), gradient.device());
    run.add_root(gradient_edge(tensor), gradient);
  }
}

}  // namespace

namespace detail {

const Node* current_node() { return current_frame.node; }

bool current_node_needs(std::size_t index) {
  return index < current_frame.needs.size() && current_frame.needs[index];
}

void check_anomaly(const std::string& operation, const char* phase, const TensorList& results,
                   const TensorList& inputs, bool given_infinity) {
  const auto looked_at = [](const Tensor& tensor) {
    return tensor.defined() && tensor.is_floating_point() && tensor.numel() > 0;
  };
  for (const Tensor& result : results) {
    if (!looked_at(result) || all_finite(result)) continue;
    const bool is_nan = any_nan(result);
    bool has_infinity = given_infinity;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!looked_at(inputs[i]) || all_finite(inputs[i])) continue;
      check<AutogradError>(
          !any_nan(inputs[i]), operation.c_str(),
          "anomaly mode: no value may be NaN; input {} of its {} already holds one "
          "(shape {}); look at the data, or at what made it outside of anomaly "
          "mode",
          i, phase, inputs[i].shape());
      has_infinity = true;
    }
    // An infinity may be passed on: masks are made of it.
    if (has_infinity && !is_nan) continue;
    throw AutogradError(
        operation,
        fmt::format("anomaly mode: every value must be finite; its {} made {} (shape {}) from {} "
                    "inputs; look at the range of its inputs",
                    phase, is_nan ? "a NaN" : "an infinity", result.shape(),
                    has_infinity ? "infinite" : "finite"));
  }
}

}  // namespace detail

void backward(const TensorList& tensors, const TensorList& gradients,
              const BackwardOptions& options) {
  Run run(true, options.retain_graph || options.create_graph, options.create_graph);
  add_roots(run, "backward", tensors, gradients);
  run.execute();
}

TensorList grad(const TensorList& outputs, const TensorList& inputs, const GradOptions& options) {
  Run run(false, options.retain_graph.value_or(options.create_graph), options.create_graph);
  std::vector<Edge> keep_alive;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check<AutogradError>(inputs[i].requires_grad(), "grad",
                         "input {} must require grad; got one that does not; call requires_grad_() "
                         "before it is used",
                         i);
    keep_alive.push_back(gradient_edge(inputs[i]));
    run.add_target(keep_alive.back(), i);
  }
  check<AutogradError>(!inputs.empty(), "grad", "needs at least one input; got none");
  add_roots(run, "grad", outputs, options.grad_outputs);
  TensorList result = run.execute();
  for (std::size_t i = 0; i < result.size(); ++i)
    check<AutogradError>(result[i].defined() || options.allow_unused, "grad",
                         "the outputs must depend on every input; input {} was not used; pass "
                         "{{.allow_unused = true}} "
                         "for an undefined result",
                         i);
  return result;
}

TensorList composite_backward(const std::function<TensorList(const TensorList&)>& composite,
                              const TensorList& inputs, const TensorList& grad_outputs) {
  const EnableGradGuard recording;
  // Another tensor object for each input: where one tensor comes twice, each place gets its own
  // gradient.
  TensorList places(inputs.size());
  TensorList targets;
  std::vector<std::size_t> position;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    if (!inputs[i].requires_grad()) {
      places[i] = inputs[i];
      continue;
    }
    places[i] = detail::alias(inputs[i]);
    targets.push_back(places[i]);
    position.push_back(i);
  }
  TensorList result(inputs.size());
  if (targets.empty()) return result;
  const TensorList outputs = composite(places);
  TensorList roots;
  TensorList root_gradients;
  for (std::size_t i = 0; i < outputs.size() && i < grad_outputs.size(); ++i) {
    if (!grad_outputs[i].defined() || !outputs[i].requires_grad()) continue;
    roots.push_back(outputs[i]);
    root_gradients.push_back(grad_outputs[i]);
  }
  if (roots.empty()) return result;
  TensorList gradients = grad(
      roots, targets, {.grad_outputs = root_gradients, .create_graph = true, .allow_unused = true});
  for (std::size_t i = 0; i < gradients.size(); ++i) result[position[i]] = std::move(gradients[i]);
  return result;
}

}  // namespace norma
