#include "norma/nn/serialization.h"

#include "norma/core/safetensors.h"

namespace norma::nn {

namespace {

/// Safetensors files of tied weights often hold them once: puts them under their other names, too.
void add_tied_names(const Module& module, StateDict& state) {
  const StateDict own = module.state_dict();
  for (const auto& [name, tensor] : own) {
    if (state.contains(name)) continue;
    for (const auto& [other, twin] : own)
      if (twin.storage() == tensor.storage() && twin.shape() == tensor.shape() &&
          twin.storage_offset() == tensor.storage_offset() && state.contains(other)) {
        state.insert(name, Tensor(state.at(other)));
        break;
      }
  }
}

}  // namespace

void save(const Module& module, const std::string& path) {
  safetensors::save_file(module.state_dict(), path, {{"format", "pt"}});
}

LoadReport load(Module& module, const std::string& path, bool strict) {
  StateDict state(safetensors::load_file(path).tensors);
  add_tied_names(module, state);
  return module.load_state_dict(state, strict);
}

}  // namespace norma::nn
