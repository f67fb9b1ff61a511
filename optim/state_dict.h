// StateDict of optimizers, schedulers and averages: flat names to tensors, ready for
// safetensors::save_file.
#pragma once

#include "norma/core/tensor.h"

#include <map>
#include <string>

namespace norma::optim {

/// Names to tensors; numbers are scalars in float64 or int64. Keys of several objects go into one
/// file with prefixes: see with_prefix and without_prefix.
using StateDict = std::map<std::string, Tensor>;

/// `state` with every key behind `prefix` ("optimizer.").
StateDict with_prefix(const StateDict& state, const std::string& prefix);
/// The entries of `state` whose key starts with `prefix`, without it.
StateDict without_prefix(const StateDict& state, const std::string& prefix);

namespace detail {

/// Throws ValueError unless `state` has exactly the keys of `expected`, with the same shapes.
void check_same_layout(const StateDict& state, const StateDict& expected, const char* operation);
/// The entry `key`; throws ValueError where it is missing or has another shape.
const Tensor& entry(const StateDict& state, const std::string& key, const Shape& shape,
                    const char* operation);
/// A copy of `source` in this dtype and on this device, contiguous and without history.
Tensor copy_of(const Tensor& source, DType dtype, const Device& device);

}  // namespace detail

}  // namespace norma::optim
