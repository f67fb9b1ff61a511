// TensorImpl: what a Tensor handle points to. For the tape and the view operations; users do not
// need it.
#pragma once

#include "norma/core/storage.h"
#include "norma/core/tensor.h"

#include <atomic>
#include <list>
#include <memory>
#include <utility>

namespace norma {

/// Hooks of one tensor in the order of registration. Shared by the tensor and its node, so that a
/// hook outlives the handle for as long as the graph does.
struct HookList {
  std::uint64_t next_id = 0;
  std::list<std::pair<std::uint64_t, TensorHook>> hooks;
};

/// A tensor's place on the tape; absent for plain data.
struct AutogradMeta {
  bool requires_grad = false;            ///< leaf only
  std::shared_ptr<Node> grad_fn;         ///< null for a leaf
  std::uint32_t output_nr = 0;           ///< which output of grad_fn
  std::weak_ptr<Node> grad_accumulator;  ///< leaf only: the node that adds to `grad`
  std::shared_ptr<HookList> hooks;
  Tensor grad;
};

/// Counts its tensor among the views of a storage for as long as it lives.
class ViewCount {
 public:
  ViewCount() = default;
  ~ViewCount() { count_in(nullptr); }
  ViewCount(const ViewCount&) = delete;
  ViewCount& operator=(const ViewCount&) = delete;
  void count_in(std::atomic<int>* counter) {
    if (counter_ != nullptr) counter_->fetch_sub(1, std::memory_order_relaxed);
    counter_ = counter;
    if (counter_ != nullptr) counter_->fetch_add(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<int>* counter_ = nullptr;
};

struct TensorImpl {
  Shape shape;
  Shape strides;
  std::int64_t offset = 0;  ///< elements from the start of the storage
  std::int64_t numel = 0;
  DType dtype = DType::float32;
  bool contiguous = true;
  bool is_view = false;           ///< made by a view operation
  bool is_graph_view = false;     ///< a view operation that was recorded made it
  bool base_has_history = false;  ///< a view of a tensor that requires grad
  std::shared_ptr<Storage> storage;
  ViewCount counted;  ///< in a counter of `storage`, and so declared after it
  std::unique_ptr<AutogradMeta> autograd;

  TensorImpl(std::shared_ptr<Storage> data, DType type, const Shape& sizes, const Shape& steps,
             std::int64_t start);
  TensorImpl(const TensorImpl&) = delete;
  TensorImpl& operator=(const TensorImpl&) = delete;

  AutogradMeta& meta() {
    if (!autograd) autograd = std::make_unique<AutogradMeta>();
    return *autograd;
  }
};

namespace detail {
/// A new contiguous tensor with uninitialised elements.
Tensor make_tensor(const Shape& shape, DType dtype, const Device& device);
/// A tensor without history on the storage of `base`.
Tensor make_view(const Tensor& base, const Shape& shape, const Shape& strides, std::int64_t offset);
/// The same data as `base` without history: shares storage and version.
Tensor shallow_copy(const Tensor& base);
}  // namespace detail

}  // namespace norma
