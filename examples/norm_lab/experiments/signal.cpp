// R1: what eight layers of Linear and ReLU do to the signal.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norm_lab/relu_stack.h"
#include "norma/core/random.h"

#include <spdlog/fmt/fmt.h>

namespace norm_lab {

using namespace norma;

Result signal(const Settings& settings) {
  const std::vector<double> claimed = {0.8932, 0.6421, 0.4156, 0.2387,
                                       0.1024, 0.0432, 0.0198, 0.0163};
  const std::vector<double> derived = {0.334, 0.14, 0.059, 0.029, 0.019, 0.0167, 0.0163, 0.0163};

  manual_seed(settings.seed);
  const auto net = relu_stack(8, 512, true);
  nn::Monitor monitor(*net, of_type("ReLU"));
  std::vector<double> cosines;
  for (const nn::NamedModule& one : net->named_modules())
    if (one.module->type_name() == "ReLU")
      one.module->register_forward_hook([&](nn::Module&, const Tensor&, const Tensor& output) {
        cosines.push_back(mean_cosine(output));
      });
  (*net)(randn({32, 512}));
  const std::vector<double> measured = collect(monitor, &nn::ActivationStats::std);

  Result result{
      .claim =
          "Eight layers of Linear(512, 512) and ReLU shrink the standard deviation in steps: "
          "0.89, 0.64, 0.42, 0.24, 0.10, 0.043, 0.020, 0.016.",
      .source = "R1; the first article prints these numbers",
      .setting = "batch 32 of N(0, 1), PyTorch's initial values, standard deviation of all outputs",
      .finding =
          "Only the last number is right. The signal falls by 0.42 a layer, much faster than "
          "claimed, and then stops: what is left at 0.0163 is the biases, not the input. "
          "All samples have become one vector, and that is the loss of information."};
  for (const std::size_t layer : {0, 2, 4, 7})
    result.rows.push_back({fmt::format("standard deviation after layer {}", layer + 1),
                           about(claimed[layer], 0.1), measured[layer]});
  for (std::size_t layer = 0; layer < 8; ++layer)
    result.rows.push_back({fmt::format("the same, layer {}, as derived", layer + 1),
                           about(derived[layer], 0.1), measured[layer], Tests::reference});
  result.rows.push_back(
      {"cosine of two samples, layer 1", near(0.33, 0.04), cosines.front(), Tests::reference});
  result.rows.push_back(
      {"cosine of two samples, layer 8", between(0.999, 1.0), cosines.back(), Tests::reference});
  const std::vector<double> layers = counted(8);
  result.charts = {
      {.title = "The signal falls to the floor that the biases make",
       .x_label = "layer",
       .y_label = "standard deviation",
       .log_y = true,
       .series = {{"measured", layers, measured}, {"the article", layers, claimed, true}}},
      {.title = "All samples become one vector",
       .x_label = "layer",
       .y_label = "cosine between samples",
       .series = {{"measured", layers, cosines}}}};
  return result;
}

}  // namespace norm_lab
