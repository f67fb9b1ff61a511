#include "norma/optim/weight_decay_groups.h"

#include "norma/core/factory.h"
#include "norma/optim/adamw.h"
#include "support/catch.h"

#include <sstream>

namespace norma::optim {
namespace {

using Catch::Contains;

/// Parameters of every kind. Names and ranks mislead on purpose: a matrix called norm, a norm of
/// two dimensions.
struct Model : nn::Module {
  Tensor table = ones({1000, 4});
  Tensor weight = ones({4, 4});
  Tensor bias = zeros({4});
  Tensor gain = ones({4});
  Tensor wide_gain = ones({2, 4});
  Tensor temperature = ones({1});
  Tensor frozen = ones({4, 4});
  Tensor head;

  Model() {
    register_parameter("table", table, nn::ParameterKind::embedding);
    register_parameter("norm", weight, nn::ParameterKind::matrix);
    register_parameter("bias", bias, nn::ParameterKind::bias);
    register_parameter("gain", gain, nn::ParameterKind::norm);
    register_parameter("wide_gain", wide_gain, nn::ParameterKind::norm);
    register_parameter("temperature", temperature, nn::ParameterKind::scalar);
    register_parameter("frozen", frozen, nn::ParameterKind::matrix);
    frozen.requires_grad_(false);
    head = table;  // tied
    register_parameter("head", head, nn::ParameterKind::matrix);
  }
};

std::vector<const void*> identities(const TensorList& tensors) {
  std::vector<const void*> result;
  for (const Tensor& tensor : tensors) result.push_back(tensor.impl().get());
  return result;
}

TEST_CASE("parameters decay by what they are", "[weight_decay_groups]") {
  const Model model;
  const WeightDecayGroups split = weight_decay_groups(model, 0.1);
  REQUIRE(split.groups.size() == 2);
  CHECK(*split.groups[0].weight_decay == 0.1);
  CHECK(*split.groups[1].weight_decay == 0.0);
  CHECK(identities(split.groups[0].params) == identities({model.weight}));
  CHECK(identities(split.groups[1].params) ==
        identities({model.table, model.bias, model.gain, model.wide_gain, model.temperature}));
  CHECK(split.frozen == std::vector<std::string>{"frozen"});
  std::int64_t covered = 0;
  for (const auto& entry : split.entries) covered += entry.numel;
  CHECK(covered == model.num_parameters(true));
}

TEST_CASE("options move embeddings and single parameters", "[weight_decay_groups]") {
  const Model model;
  CHECK(identities(weight_decay_groups(model, 0.1, {.decay_embeddings = true}).groups[0].params) ==
        identities({model.table, model.weight}));
  const WeightDecayGroups split =
      weight_decay_groups(model, 0.1, {.decay = {"wide_gain"}, .no_decay = {"norm"}});
  CHECK(identities(split.groups[0].params) == identities({model.wide_gain}));
}

TEST_CASE("the split explains itself", "[weight_decay_groups]") {
  const Model model;
  std::ostringstream stream;
  stream << weight_decay_groups(model, 0.01);
  CHECK(stream.str() ==
        "weight decay 0.01: 16 values in 1 parameters\n"
        "  matrix               16 in   1\n"
        "weight decay 0: 4,017 values in 5 parameters\n"
        "  bias                  4 in   1\n"
        "  norm                 12 in   2\n"
        "  embedding         4,000 in   1\n"
        "  scalar                1 in   1\n"
        "frozen: 1 parameters (frozen)\n");
}

TEST_CASE("the split goes straight into an optimizer", "[weight_decay_groups]") {
  const Model model;
  AdamW optimizer(weight_decay_groups(model, 0.5), {.lr = 0.1, .weight_decay = 0.9});
  for (const Tensor& p : {model.weight, model.gain}) p.set_grad(zeros(p.shape()));
  optimizer.step();
  CHECK(model.weight.to_vector<float>()[0] == Approx(0.95));
  CHECK(model.gain.to_vector<float>()[0] == 1.0F);
}

TEST_CASE("what cannot be in exactly one group is an error", "[weight_decay_groups]") {
  const Model model;
  CHECK_THROWS_WITH(weight_decay_groups(model, -0.1), Contains("at least 0"));
  CHECK_THROWS_WITH(weight_decay_groups(model, 0.1, {.decay = {"nothing"}}),
                    Contains("must name parameters of the module; got \"nothing\""));
  CHECK_THROWS_WITH(weight_decay_groups(model, 0.1, {.decay = {"bias"}, .no_decay = {"bias"}}),
                    Contains("got \"bias\" in decay and no_decay"));

  struct Shared : nn::Module {
    Tensor a = ones({4, 4});
    Tensor b = a.detach();  // another tensor on the same memory
    Shared() {
      register_parameter("a", a, nn::ParameterKind::matrix);
      register_parameter("b", b, nn::ParameterKind::matrix);
    }
  };
  const Shared shared;
  CHECK_THROWS_WITH(weight_decay_groups(shared, 0.1),
                    Contains("must not share memory") && Contains("\"a\" and \"b\""));
}

}  // namespace
}  // namespace norma::optim
