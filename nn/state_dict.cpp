#include "norma/nn/state_dict.h"

#include <algorithm>

namespace norma::nn {

void StateDict::insert(const std::string& name, const Tensor& tensor) {
  check<ValueError>(!contains(name), "StateDict", "names must differ; got \"{}\" twice", name);
  entries_.emplace_back(name, tensor);
}

bool StateDict::erase(std::string_view name) {
  return std::erase_if(entries_, [&](const Entry& entry) { return entry.first == name; }) > 0;
}

const Tensor* StateDict::find(std::string_view name) const {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& entry) { return entry.first == name; });
  return it == entries_.end() ? nullptr : &it->second;
}

const Tensor& StateDict::at(std::string_view name) const {
  const Tensor* tensor = find(name);
  check<ValueError>(tensor != nullptr, "StateDict", "an entry must exist; got \"{}\" among {}",
                    name, entries_.size());
  return *tensor;
}

}  // namespace norma::nn
