#include "support/golden.h"

#include "support/catch.h"

#include "norma/core/autograd.h"

#include <algorithm>
#include <cmath>

namespace norma::test {

const std::map<std::string, Tensor>& golden(const std::string& file) {
  static std::map<std::string, std::map<std::string, Tensor>> files;
  auto& tensors = files[file];
  if (tensors.empty())
    tensors = safetensors::load_file(std::string(NORMA_TEST_DATA) + "/" + file).tensors;
  return tensors;
}

namespace {

double largest(const Tensor& tensor) {
  double result = 1e-300;
  for (const double value : tensor.to_vector<double>())
    if (std::isfinite(value)) result = std::max(result, std::abs(value));
  return result;
}

}  // namespace

Comparison equals_golden(const Tensor& actual, const Tensor& expected, DType dtype) {
  const Tolerance relative = dtype == float64 ? Tolerance{1e-10, 1e-13} : Tolerance{1e-5, 1e-6};
  return allclose(actual, expected, {relative.rtol, relative.atol * largest(expected)});
}

Comparison close_to_largest(const Tensor& actual, const Tensor& expected, double tolerance) {
  return allclose(actual, expected, {0.0, tolerance * largest(expected)});
}

namespace {

TensorList all_of(const std::map<std::string, Tensor>& tensors, const std::string& prefix) {
  TensorList list;
  for (int i = 0;; ++i) {
    const auto found = tensors.find(prefix + std::to_string(i));
    if (found == tensors.end()) return list;
    list.push_back(found->second);
  }
}

}  // namespace

void check_golden_op(const std::string& name, const OpFunction& function, const std::string& file) {
  INFO(name);
  const auto& tensors = golden(file);
  for (const DType dtype : {float64, float32}) {
    INFO(dtype_name(dtype));
    TensorList inputs;
    for (const Tensor& input : all_of(tensors, name + "/in")) {
      inputs.push_back(converted(input, dtype));
      if (input.is_floating_point()) inputs.back().requires_grad_();
    }
    REQUIRE_FALSE(inputs.empty());
    const TensorList outputs = function(inputs);
    const TensorList expected = all_of(tensors, name + "/out");
    REQUIRE(outputs.size() == expected.size());
    TensorList roots;
    TensorList cotangents;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      INFO("output " << i);
      CHECK(equals_golden(outputs[i].detach(), expected[i], dtype));
      const auto cotangent = tensors.find(name + "/ct" + std::to_string(i));
      if (cotangent == tensors.end()) continue;
      roots.push_back(outputs[i]);
      cotangents.push_back(converted(cotangent->second, dtype));
    }
    if (roots.empty()) continue;
    backward(roots, cotangents);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto gradient = tensors.find(name + "/grad" + std::to_string(i));
      if (gradient == tensors.end()) continue;
      INFO("gradient " << i);
      CHECK(equals_golden(inputs[i].grad(), gradient->second, dtype));
    }
  }
}

}  // namespace norma::test
