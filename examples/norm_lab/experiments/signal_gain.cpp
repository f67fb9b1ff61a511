// R2, R3: what one linear layer and one ReLU do to the size of the signal.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/ops/activation.h"
#include "norma/ops/linear.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>

namespace norm_lab {

using namespace norma;

Result signal_gain(const Settings& settings) {
  manual_seed(settings.seed);
  Result result{
      .claim =
          "Weights of N(0, 1) give std(y) = std(x) · √in / √out, and a ReLU halves the "
          "standard deviation.",
      .source = "R2, R3; the first article",
      .setting = "256 samples of N(0, 1), float32",
      .finding =
          "A layer multiplies the signal by σ √in, whatever its output width: ×22.6 for "
          "N(0, 1) and width 512. A ReLU halves the second moment (×0.707 of the rms); the "
          "standard deviation becomes 0.584 of what it was."};
  Series measured{"measured", {}, {}}, claimed{"the article", {}, {}, true};
  Chart chart{.kind = ChartKind::bars,
              .title = "Gain of a layer with weights of N(0, 1)",
              .x_label = "in → out",
              .y_label = "std(y) / std(x)",
              .log_y = true};
  for (const auto& [in, out] : {std::pair{512, 512}, std::pair{512, 128}, std::pair{128, 512}}) {
    const Tensor x = randn({256, in});
    const double gain = deviation(linear(x, randn({out, in}))) / deviation(x);
    const double article = std::sqrt(static_cast<double>(in) / out);
    const std::string name = fmt::format("{} → {}", in, out);
    result.rows.push_back({"gain of " + name, about(article, 0.05), gain});
    result.rows.push_back({"the same as σ √in", about(std::sqrt(static_cast<double>(in)), 0.05),
                           gain, Tests::reference});
    chart.categories.push_back(name);
    measured.y.push_back(gain);
    claimed.y.push_back(article);
  }
  const Tensor x = randn({256, 512});
  const Tensor y = relu(x);
  result.rows.push_back({"std(relu(x)) / std(x)", near(0.5, 0.02), deviation(y) / deviation(x)});
  result.rows.push_back(
      {"the same, as derived", near(0.584, 0.01), deviation(y) / deviation(x), Tests::reference});
  result.rows.push_back(
      {"rms(relu(x)) / rms(x)", near(0.7071, 0.01), rms(y) / rms(x), Tests::reference});
  chart.series = {measured, claimed};
  result.charts = {chart};
  return result;
}

}  // namespace norm_lab
