#include "norma/core/saved_tensor.h"

namespace norma {

SavedTensor::SavedTensor(const Tensor& tensor, std::int64_t output_nr) : output_nr_(output_nr) {
  if (!tensor.defined()) return;
  version_ = tensor.version();
  storage_ = tensor.storage();
  // A leaf that requires grad keeps its identity, for a gradient of the gradient accumulates into
  // it. Others may get a history by an in-place operation later, which would lead back to here.
  if (output_nr < 0 && tensor.is_leaf() && tensor.requires_grad()) {
    tensor_ = tensor;
    return;
  }
  // A copy of the handle, so that a later in-place operation on the tensor, which gives it a new
  // history, leaves the saved one as it was. An output is kept without history.
  tensor_ = detail::shallow_copy(tensor);
  if (output_nr < 0) {
    tensor_.impl()->meta().grad_fn = tensor.grad_fn();
    tensor_.impl()->meta().output_nr = tensor.output_nr();
  }
}

Tensor SavedTensor::unpack(const std::shared_ptr<Node>& owner, std::size_t index) const {
  if (!tensor_.defined()) return {};
  check<AutogradError>(storage_.lock() == tensor_.storage(),
                       owner ? owner->name().c_str() : "saved_tensor",
                       "a value saved for backward must not change; saved tensor {} (shape {}) got "
                       "other data since; convert a module before its forward, or run it again",
                       index, tensor_.shape());
  check<AutogradError>(
      tensor_.version() == version_, owner ? owner->name().c_str() : "saved_tensor",
      "a value saved for backward must not change; saved tensor {} ({}, shape {}) is at version "
      "{}, was saved at "
      "version {}; use the out-of-place operation, or clone() before the in-place change",
      index, output_nr_ < 0 ? "an input" : fmt::format("output {}", output_nr_), tensor_.shape(),
      tensor_.version(), version_);
  if (output_nr_ < 0) return tensor_;
  Tensor output = detail::shallow_copy(tensor_);
  if (owner) {
    output.impl()->meta().grad_fn = owner;
    output.impl()->meta().output_nr = static_cast<std::uint32_t>(output_nr_);
  }
  return output;
}

}  // namespace norma
