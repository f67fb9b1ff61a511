// R4: a hundred layers.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norm_lab/relu_stack.h"
#include "norma/core/random.h"

#include <numeric>

namespace norm_lab {

using namespace norma;

Result signal_depth(const Settings& settings) {
  const auto run = [&](bool bias) {
    manual_seed(settings.seed);
    const auto net = relu_stack(100, 512, bias);
    nn::Monitor monitor(*net, of_type("ReLU"));
    (*net)(randn({32, 512}));
    return collect(monitor, &nn::ActivationStats::std);
  };
  const std::vector<double> with = run(true), without = run(false);

  const double floor = std::accumulate(with.begin() + 10, with.end(), 0.0) / 90.0;
  const std::vector<double> layers = counted(100);
  std::vector<double> visible = without;  // a logarithmic axis has no zero
  for (double& value : visible)
    if (value == 0.0) value = std::numeric_limits<double>::quiet_NaN();
  return {
      .claim = "After 100 layers the standard deviation is 1e-10.",
      .source = "R4; the first article",
      .setting = "100 × [Linear(512, 512), ReLU], batch 32 of N(0, 1), PyTorch's initial values",
      .rows = {{"100 layers with biases", within_factor(1e-10, 10), with[99]},
               {"100 layers without", within_factor(1e-10, 10), without[99]},
               {"with biases, mean of layers 11 to 100, as derived", about(0.0163, 0.08), floor,
                Tests::reference},
               {"8 layers without", within_factor(6.2e-4, 1.3), without[7], Tests::reference},
               {"30 layers without", within_factor(1.6e-12, 2.5), without[29], Tests::reference},
               {"100 layers without", at_most(1e-36), without[99], Tests::reference}},
      .finding =
          "With biases nothing vanishes: the standard deviation stays at the bias floor for "
          "ever. Without them it falls by 0.408 a layer, and after 100 layers float32 has "
          "no number for it any more.",
      .charts = {{.title = "With biases a floor, without them none",
                  .x_label = "layer",
                  .y_label = "standard deviation",
                  .log_y = true,
                  .series = {{"with biases", layers, with}, {"without", layers, visible}}}}};
}

}  // namespace norm_lab
