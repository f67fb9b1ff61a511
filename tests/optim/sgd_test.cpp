#include "norma/optim/sgd.h"

#include "norma/core/factory.h"
#include "support/catch.h"

namespace norma::optim {
namespace {

using Catch::Contains;

/// Values of a parameter that starts at 1 after steps with gradients 1, -2, 3, by the formula in
/// sgd.h.
std::vector<double> scripted(const SGDOptions& o) {
  std::vector<double> values;
  double theta = 1;
  double buffer = 0;
  bool first = true;
  for (const double raw : {1.0, -2.0, 3.0}) {
    double g = (o.maximize ? -raw : raw) + o.weight_decay * theta;
    if (o.momentum != 0) {
      buffer = first ? g : o.momentum * buffer + (1 - o.dampening) * g;
      g = o.nesterov ? g + o.momentum * buffer : buffer;
    }
    first = false;
    theta -= o.lr * g;
    values.push_back(theta);
  }
  return values;
}

TEST_CASE("SGD follows its formula", "[sgd]") {
  const SGDOptions options = GENERATE(values<SGDOptions>({
      {.lr = 0.1},
      {.lr = 0.1, .weight_decay = 0.5},
      {.lr = 0.1, .momentum = 0.9},
      {.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1},
      {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true},
      {.lr = 0.1, .momentum = 0.5, .weight_decay = 0.1, .maximize = true},
  }));
  const DType dtype = GENERATE(float64, float32, bfloat16);
  const Tensor parameter = full({17}, 1.0, {.dtype = dtype, .requires_grad = true});
  SGD optimizer(TensorList{parameter}, options);
  const std::vector<double> expected = scripted(options);
  const double gradients[] = {1.0, -2.0, 3.0};
  for (std::size_t step = 0; step < 3; ++step) {
    parameter.set_grad(full({17}, gradients[step], {.dtype = dtype}));
    optimizer.step();
    const double epsilon = dtype == float64 ? 1e-14 : dtype == float32 ? 1e-6 : 4e-3;
    for (const double got : parameter.to_vector<double>())
      REQUIRE(got == Approx(expected[step]).epsilon(epsilon));
  }
}

TEST_CASE("SGD keeps no buffer that it does not need", "[sgd]") {
  const Tensor parameter = ones({2}, {.requires_grad = true});
  SGD plain(TensorList{parameter}, {.lr = 0.1});
  SGD momentum(TensorList{parameter}, {.lr = 0.1, .momentum = 0.9});
  parameter.set_grad(ones({2}));
  plain.step();
  momentum.step();
  CHECK_FALSE(plain.state_dict().contains("state.0.momentum_buffer"));
  CHECK(momentum.state_dict().contains("state.0.momentum_buffer"));
  // Momentum that is switched on begins with the next step, also after saving and loading.
  plain.param_groups()[0].momentum = 0.9;
  const Tensor twin = parameter.detach().clone().requires_grad_();
  SGD loaded(TensorList{twin}, {.lr = 0.1, .momentum = 0.9});
  loaded.load_state_dict(plain.state_dict());
  twin.set_grad(ones({2}));
  for (SGD* optimizer : {&plain, &loaded}) {
    optimizer->step();
    optimizer->step();
  }
  CHECK(twin.to_vector<float>() == parameter.to_vector<float>());
}

TEST_CASE("SGD refuses options that make no sense", "[sgd]") {
  const TensorList params = {ones({2}, {.requires_grad = true})};
  CHECK_THROWS_WITH(SGD(params, {.momentum = -0.1}), Contains("[sgd] momentum"));
  CHECK_THROWS_WITH(SGD(params, {.nesterov = true}), Contains("nesterov must have momentum"));
  CHECK_THROWS_WITH(SGD(params, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}),
                    Contains("dampening 0.1"));
  CHECK_THROWS_WITH(SGD(std::vector<ParamGroup>{{.params = params, .eps = 1e-8}}),
                    Contains("got eps"));
}

}  // namespace
}  // namespace norma::optim
