// R26, L13: what eps does to small inputs.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/nn/norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/norm.h"

#include <cmath>

namespace norm_lab {

using namespace norma;

Result epsilon(const Settings& settings) {
  manual_seed(settings.seed);
  const Tensor unit = simple_rms_norm(randn({64, 512}));
  const auto output = [&](double size, double eps) {
    return rms(rms_norm(unit * size, {512}, {}, eps));
  };
  const std::vector<double> sizes = {1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 1};
  Chart chart{.title = "Size of the output of RMSNorm",
              .x_label = "rms of the input",
              .y_label = "rms of the output",
              .log_x = true,
              .log_y = true};
  for (const double eps : {1e-5, 1e-6, 1e-8}) {
    Series series{"eps " + number(eps), sizes, {}};
    for (const double size : sizes) series.y.push_back(output(size, eps));
    chart.series.push_back(series);
  }
  nn::RMSNorm standard(512);
  const double machine = std::numeric_limits<float>::epsilon();
  return {
      .claim =
          "1e-5 and 1e-6 are both small enough not to matter, and the default of torch.nn.RMSNorm "
          "is the machine epsilon.",
      .source = "R26, L13",
      .setting = "rows of width 512 and exact rms, float32",
      .rows = {{"output at input rms 1, eps 1e-5", about(1, 1e-4), output(1, 1e-5)},
               {"output at input rms 0.02, as fresh embeddings have, eps 1e-6", about(1, 0.01),
                output(0.02, 1e-6)},
               {"the same, eps 1e-5", about(1, 0.01), output(0.02, 1e-5)},
               {"output at input rms √eps: 1 / √2", about(std::sqrt(0.5), 1e-3),
                output(std::sqrt(1e-5), 1e-5), Tests::reference},
               {"nn.RMSNorm() at input rms √1.19e-7", about(std::sqrt(0.5), 1e-3),
                rms(standard(unit * std::sqrt(machine))), Tests::reference}},
      .depends_on =
          "the size of the input: eps is felt where the rms comes near √eps, 0.003 for "
          "1e-5 and 0.001 for 1e-6; embeddings of N(0, 0.02²) lose 1 % to 1e-5",
      .finding =
          "Below √eps a norm is a linear layer. Code that moves weights between the two "
          "conventions changes the first layers of a model.",
      .charts = {chart}};
}

}  // namespace norm_lab
