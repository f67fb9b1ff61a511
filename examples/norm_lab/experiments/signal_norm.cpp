// R6: the same eight layers with RMSNorm.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norm_lab/relu_stack.h"
#include "norma/core/random.h"

namespace norm_lab {

using namespace norma;

namespace {

std::vector<nn::ActivationStats> run(std::uint64_t seed, StackNorm norm, const char* watched) {
  manual_seed(seed);
  const auto net = relu_stack(8, 512, true, norm);
  nn::Monitor monitor(*net, of_type(watched));
  (*net)(randn({32, 512}));
  return monitor.activations();
}

std::vector<double> deviations(const std::vector<nn::ActivationStats>& layers) {
  std::vector<double> values;
  for (const auto& layer : layers) values.push_back(layer.std);
  return values;
}

}  // namespace

Result signal_norm(const Settings& settings) {
  const auto before = run(settings.seed, StackNorm::before_relu, "ReLU");
  const auto after = run(settings.seed, StackNorm::after_relu, "RMSNorm");
  const auto none = run(settings.seed, StackNorm::none, "ReLU");
  const std::vector<double> layers = counted(8);
  return {
      .claim = "With RMSNorm in each layer the standard deviation stays between 0.98 and 1.01.",
      .source = "R6; the first article, for Linear, RMSNorm, ReLU",
      .setting = "8 layers of width 512, batch 32 of N(0, 1), PyTorch's initial values",
      .rows = {{"after layer 1", between(0.98, 1.01), before.front().std},
               {"after layer 8", between(0.98, 1.01), before.back().std},
               {"Linear, RMSNorm, ReLU: as derived", near(0.584, 0.02), before.back().std,
                Tests::reference},
               {"Linear, ReLU, RMSNorm: standard deviation", near(0.826, 0.02), after.back().std,
                Tests::reference},
               {"Linear, ReLU, RMSNorm: rms", near(1.0, 0.005), after.back().rms, Tests::reference},
               {"Linear, ReLU, RMSNorm: mean", near(0.564, 0.02), after.back().mean,
                Tests::reference}},
      .finding =
          "RMSNorm sets the rms to 1, not the standard deviation: the two are the same only "
          "where the mean is 0, and behind a ReLU it is not. Constant they are, and that "
          "is the point of the norm.",
      .charts = {{.title = "Standard deviation with and without RMSNorm",
                  .x_label = "layer",
                  .y_label = "standard deviation",
                  .log_y = true,
                  .series = {{"Linear, RMSNorm, ReLU", layers, deviations(before)},
                             {"Linear, ReLU, RMSNorm", layers, deviations(after)},
                             {"no norm", layers, deviations(none)},
                             {"the article", layers, std::vector<double>(8, 1.0), true}}}}};
}

}  // namespace norm_lab
