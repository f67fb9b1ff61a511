// R5: the gradients of the weights, layer by layer.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norm_lab/relu_stack.h"
#include "norma/core/random.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace norm_lab {

using namespace norma;

namespace {

std::vector<double> weight_gradients(std::uint64_t seed, bool bias) {
  manual_seed(seed);
  const auto net = relu_stack(8, 512, bias);
  const nn::Monitor monitor(*net);
  (*net)(randn({32, 512})).sum().backward();
  std::vector<double> norms;
  for (const nn::ParameterStats& stats : monitor.parameters())
    if (stats.kind == nn::ParameterKind::matrix) norms.push_back(stats.gradient_norm);
  return norms;
}

}  // namespace

Result signal_gradients(const Settings& settings) {
  const std::vector<double> derived = {4.7, 9.3, 13.9, 16.9, 24.8, 47, 100, 222};
  const std::vector<double> with = weight_gradients(settings.seed, true);
  const std::vector<double> without = weight_gradients(settings.seed, false);
  const auto [least, most] = std::minmax_element(without.begin(), without.end());

  Result result{
      .claim =
          "In eight layers without norm the gradients vanish: from 0.432 in the last layer to "
          "1.2e-5 in the first.",
      .source = "R5; the first article prints these numbers for loss = output.sum()",
      .setting = "8 × [Linear(512, 512), ReLU], batch 32 of N(0, 1), PyTorch's initial values",
      .finding =
          "Nothing vanishes within eight layers: with biases the first layer has a gradient "
          "47 times smaller than the last, without them all are alike."};
  const std::vector<std::pair<std::size_t, double>> claimed = {
      {0, 1.2e-5}, {1, 4.5e-5}, {2, 2.31e-4}, {6, 0.123}, {7, 0.432}};
  Series article{"the article", {}, {}, true};
  for (const auto& [layer, value] : claimed) {
    result.rows.push_back({fmt::format("gradient norm of layer {}", layer + 1),
                           within_factor(value, 3), with[layer]});
    article.x.push_back(static_cast<double>(layer + 1));
    article.y.push_back(value);
  }
  for (std::size_t layer = 0; layer < 8; ++layer)
    result.rows.push_back({fmt::format("the same, layer {}, as simulated", layer + 1),
                           within_factor(derived[layer], 1.5), with[layer], Tests::reference});
  result.rows.push_back(
      {"without biases: largest / smallest", at_most(3), *most / *least, Tests::reference});
  const std::vector<double> layers = counted(8);
  result.charts = {
      {.title = "Gradients of the weights",
       .x_label = "layer",
       .y_label = "gradient norm",
       .log_y = true,
       .series = {{"with biases", layers, with}, {"without", layers, without}, article}}};
  return result;
}

}  // namespace norm_lab
