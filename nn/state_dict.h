// StateDict: names to tensors, in the order of registration. What a checkpoint holds.
#pragma once

#include "norma/core/tensor.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace norma::nn {

/// An ordered map from dotted names ("layers.0.mlp.fc1.weight") to tensors.
class StateDict {
 public:
  using Entry = std::pair<std::string, Tensor>;

  StateDict() = default;
  StateDict(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) insert(entry.first, entry.second);
  }

  /// The tensors of a file: `model.load_state_dict(safetensors::load_file(path).tensors)`.
  // NOLINTNEXTLINE(google-explicit-constructor): as in the other direction
  StateDict(const std::map<std::string, Tensor>& tensors)
      : entries_(tensors.begin(), tensors.end()) {}
  /// `safetensors::save_file(model.state_dict(), path)`.
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator const std::vector<Entry>&() const { return entries_; }

  /// Adds an entry at the end; throws ValueError when the name is there already.
  void insert(const std::string& name, const Tensor& tensor);
  /// Removes an entry; whether there was one.
  bool erase(std::string_view name);
  /// The tensor of `name`, or null.
  const Tensor* find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// The tensor of `name`; throws ValueError when there is none.
  const Tensor& at(std::string_view name) const;

  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  std::vector<Entry>::const_iterator begin() const { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
};

/// What load_state_dict found: names of the module that the dictionary lacks, and the reverse.
struct LoadReport {
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
  bool ok() const { return missing.empty() && unexpected.empty(); }
};

}  // namespace norma::nn
