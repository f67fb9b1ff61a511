// Twenty steps against PyTorch; tests/golden/make_models.py made the values.
#include "norma/core/factory.h"
#include "norma/core/safetensors.h"
#include "norma/optim/adamw.h"
#include "norma/optim/clip_grad.h"
#include "norma/optim/sgd.h"
#include "support/catch.h"

#include <cmath>
#include <functional>

namespace norma::optim {
namespace {

using Make = std::function<std::unique_ptr<Optimizer>(const TensorList&)>;

struct Case {
  const char* name;
  Make make;
};

std::vector<Case> cases() {
  return {
      {"adamw",
       [](const TensorList& p) {
         return std::make_unique<AdamW>(
             std::vector<ParamGroup>{{.params = {p[0]}, .weight_decay = 0.1},
                                     {.params = {p[1], p[2]}, .lr = 3e-3, .weight_decay = 0.0}},
             AdamWOptions{.lr = 1e-2, .betas = {0.9, 0.98}, .eps = 1e-8});
       }},
      {"adamw_maximize",
       [](const TensorList& p) {
         return std::make_unique<AdamW>(p, AdamWOptions{.lr = 1e-2, .maximize = true});
       }},
      {"sgd",
       [](const TensorList& p) {
         return std::make_unique<SGD>(
             p, SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.1, .weight_decay = 0.01});
       }},
      {"sgd_nesterov",
       [](const TensorList& p) {
         return std::make_unique<SGD>(p, SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true});
       }},
      {"sgd_plain",
       [](const TensorList& p) { return std::make_unique<SGD>(p, SGDOptions{.lr = 0.1}); }},
  };
}

void require_close(const Tensor& got, const Tensor& expected, double tolerance) {
  const std::vector<double> a = got.to_vector<double>();
  const std::vector<double> b = expected.to_vector<double>();
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i, a[i], b[i]);
    REQUIRE(std::abs(a[i] - b[i]) <= tolerance * std::max(1.0, std::abs(b[i])));
  }
}

TEST_CASE("optimizers with groups and clipping equal PyTorch's over 20 steps", "[golden]") {
  const auto golden =
      safetensors::load_file(std::string(NORMA_TEST_DATA) + "/optimizers.safetensors").tensors;
  const DType dtype = GENERATE(float64, float32);
  const double tolerance = dtype == float64 ? 1e-12 : 1e-5;
  for (const Case& test : cases()) {
    CAPTURE(test.name);
    TensorList params;
    for (int i = 0; i < 3; ++i) {
      params.push_back(golden.at(fmt::format("start{}", i)).to(dtype).clone());
      params.back().requires_grad_();
    }
    const auto optimizer = test.make(params);
    for (int step = 0; step < 20; ++step) {
      CAPTURE(step);
      for (std::size_t i = 0; i < 3; ++i)
        params[i].set_grad(golden.at(fmt::format("grad{}_{}", step, i)).to(dtype).clone());
      const Tensor norm = clip_grad_norm_(params, 4.0);
      require_close(norm, golden.at(fmt::format("{}/norm{}", test.name, step)), tolerance);
      optimizer->step();
      if (step != 0 && step != 19) continue;
      for (std::size_t i = 0; i < 3; ++i)
        require_close(params[i], golden.at(fmt::format("{}/step{}_{}", test.name, step, i)),
                      tolerance);
    }
  }
}

}  // namespace
}  // namespace norma::optim
