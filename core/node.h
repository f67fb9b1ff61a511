// Node: one recorded operation. The tape is the order of their sequence numbers.
#pragma once

#include "norma/core/tensor_impl.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace norma {

/// Output `output` of `node`: where a gradient goes. An empty edge takes none.
struct Edge {
  std::shared_ptr<Node> node;
  std::uint32_t output = 0;
  explicit operator bool() const { return node != nullptr; }
};

/// What the gradient of a forward output must look like.
struct TensorMeta {
  Shape shape;
  DType dtype = DType::float32;
  Device device;
};

/// One operation on the tape. Owned by the tensors that it made and by the nodes that follow it.
///
/// Nodes are created through make_node, whose deleter unlinks chains iteratively: destruction never
/// recurses, also where the chain runs through saved tensors, hooks or user data.
class Node : public std::enable_shared_from_this<Node> {
 public:
  Node();
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Name of the operation, for messages.
  virtual std::string name() const = 0;
  /// Gradients of the inputs (one per edge, undefined where not needed) from those of the outputs.
  virtual TensorList apply(TensorList grad_outputs) = 0;
  /// Frees what was saved for backward.
  virtual void release_saved() {}

  /// Position on the tape: larger than that of every node it depends on.
  std::uint64_t sequence() const { return sequence_; }
  /// Moves this node to the end of the tape. A node that is recorded calls it once its edges stand,
  /// because connecting them may make the accumulators of leaves, and what a node depends on must
  /// stand before it.
  void move_to_end();

  std::vector<Edge> edges;          ///< one per tensor input
  std::vector<TensorMeta> outputs;  ///< one per forward output

  /// Hooks on forward outputs, by output; empty when there are none.
  std::vector<std::shared_ptr<HookList>> hooks;
  /// Outputs whose gradient a tensor wants to keep (retain_grad), by output.
  std::vector<std::weak_ptr<TensorImpl>> retained;

  /// Nodes alive in this process: 0 when no graph is.
  static std::int64_t live_count();

 private:
  std::uint64_t sequence_;
};

/// Deletes a node without recursion, whatever hangs below it.
void delete_node(Node* node);

template <class T, class... Args>
std::shared_ptr<T> make_node(Args&&... args) {
  return std::shared_ptr<T>(new T(std::forward<Args>(args)...), [](T* node) { delete_node(node); });
}

/// Where the gradient of `tensor` goes: its node, or for a leaf that requires grad its accumulator.
Edge gradient_edge(const Tensor& tensor);

}  // namespace norma
