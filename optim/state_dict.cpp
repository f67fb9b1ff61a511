#include "norma/optim/state_dict.h"

#include "norma/core/grad_mode.h"
#include "norma/core/required_ops.h"
#include "norma/core/tensor_impl.h"

namespace norma::optim {

StateDict with_prefix(const StateDict& state, const std::string& prefix) {
  StateDict result;
  for (const auto& [key, tensor] : state) result.emplace(prefix + key, tensor);
  return result;
}

StateDict without_prefix(const StateDict& state, const std::string& prefix) {
  StateDict result;
  for (const auto& [key, tensor] : state)
    if (key.starts_with(prefix)) result.emplace(key.substr(prefix.size()), tensor);
  return result;
}

namespace detail {

const Tensor& entry(const StateDict& state, const std::string& key, const Shape& shape,
                    const char* operation) {
  const auto found = state.find(key);
  check(
      found != state.end() && found->second.defined(), operation,
      "the state must hold \"{}\"; got {} other entries; was it saved by the same kind of object?",
      key, state.size());
  check(found->second.shape() == shape, operation,
        "\"{}\" must have shape {}; got {}; the state belongs to other parameters", key, shape,
        found->second.shape());
  return found->second;
}

void check_same_layout(const StateDict& state, const StateDict& expected, const char* operation) {
  for (const auto& [key, tensor] : expected) entry(state, key, tensor.shape(), operation);
  for (const auto& [key, tensor] : state)
    check(expected.contains(key), operation,
          "the state must hold what this object has; got \"{}\", too; it belongs to another model",
          key);
}

Tensor copy_of(const Tensor& source, DType dtype, const Device& device) {
  const NoGradGuard no_grad;
  const Tensor result = norma::detail::make_tensor(source.shape(), dtype, device);
  norma::detail::copy(result, source);
  return result;
}

}  // namespace detail

}  // namespace norma::optim
