// SavedTensor: a value kept for backward, with the version it had.
#pragma once

#include "norma/core/node.h"

namespace norma {

/// Holds an input or output of an operation until its backward. An output is held without its own
/// node, so that the node does not own itself; `unpack` attaches it again.
class SavedTensor {
 public:
  SavedTensor() = default;
  /// `output_nr` is the index among the outputs of the operation, or -1 for an input.
  SavedTensor(const Tensor& tensor, std::int64_t output_nr);
  /// The value; throws AutogradError naming `owner` and `index` when it was changed in place since.
  Tensor unpack(const std::shared_ptr<Node>& owner, std::size_t index) const;

 private:
  Tensor tensor_;
  std::int64_t output_nr_ = -1;
  std::uint64_t version_ = 0;
  std::weak_ptr<Storage> storage_;  ///< to see a leaf that got other data (Module::to)
};

}  // namespace norma
