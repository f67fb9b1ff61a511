#include "norma/nn/serialization.h"

#include "norma/core/safetensors.h"

namespace norma::nn {

void save(const Module& module, const std::string& path) {
  safetensors::save_file(module.state_dict(), path, {{"format", "pt"}});
}

LoadReport load(Module& module, const std::string& path, bool strict) {
  return module.load_state_dict(StateDict(safetensors::load_file(path).tensors), strict);
}

}  // namespace norma::nn
