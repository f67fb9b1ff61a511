#include "support/golden.h"

#include "support/catch.h"
#include "support/compare.h"

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

bool close_to_largest(const Tensor& actual, const Tensor& expected, double tolerance) {
  if (!actual.defined() || actual.shape() != expected.shape()) return false;
  double largest = 0.0;
  for (const double value : expected.to_vector<double>())
    largest = std::max(largest, std::abs(value));
  return allclose(actual, expected, {0.0, tolerance * std::max(largest, 1e-300)}).ok;
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
    const double tolerance = dtype == float64 ? 1e-10 : 1e-5;
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
      CHECK(close_to_largest(outputs[i].detach(), expected[i], tolerance));
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
      CHECK(close_to_largest(inputs[i].grad(), gradient->second, tolerance));
    }
  }
}

}  // namespace norma::test
