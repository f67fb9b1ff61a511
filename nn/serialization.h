// Modules to and from safetensors files.
#pragma once

#include "norma/nn/module.h"

namespace norma::nn {

/// Writes the state_dict of `module`. The file takes the place of an older one only when it is
/// complete. Throws FileError.
void save(const Module& module, const std::string& path);
/// Reads a file and loads it into `module` as load_state_dict does. A tied weight may stand under
/// any one of its names, as safetensors.torch and HF write it. Throws FileError and what
/// load_state_dict throws.
LoadReport load(Module& module, const std::string& path, bool strict = true);

}  // namespace norma::nn
