// R14: numbers that fit on a napkin.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norma/core/factory.h"
#include "norma/ops/norm.h"

namespace norm_lab {

using namespace norma;

Result golden(const Settings&) {
  const Tensor x = tensor({{1.0, 2.0, 3.0, 4.0}, {5.0, 6.0, 7.0, 8.0}});
  const Tensor rms = rms_norm(x, {4}, {}, 1e-6);
  const Tensor centred = layer_norm(x, {4});
  const Tensor first = tensor({0.3651, 0.7303, 1.0954, 1.4606});
  const Tensor second = tensor({0.7581, 0.9097, 1.0613, 1.2130});
  const Tensor either = tensor({-1.3416, -0.4472, 0.4472, 1.3416});
  const std::vector<double> places = counted(4);
  const auto row = [](const Tensor& t, std::int64_t i) { return t[i].to_vector<double>(); };
  return {.claim =
              "RMSNorm of 1 2 3 4 is 0.3651 0.7303 1.0954 1.4606, of 5 6 7 8 it is 0.7581 0.9097 "
              "1.0613 1.2130; LayerNorm of either is ∓1.3416 ∓0.4472.",
          .source = "R14; the second article",
          .setting = "largest difference from the printed digits, eps 1e-6 and 1e-5",
          .rows = {{"RMSNorm of 1 2 3 4", at_most(1e-4), difference(rms[0], first)},
                   {"RMSNorm of 5 6 7 8", at_most(1e-4), difference(rms[1], second)},
                   {"LayerNorm of 1 2 3 4", at_most(1e-4), difference(centred[0], either)},
                   {"LayerNorm of 5 6 7 8", at_most(1e-4), difference(centred[1], either)}},
          .finding = "RMSNorm remembers where the numbers were, LayerNorm does not.",
          .charts = {{.title = "The two rows after the norms",
                      .x_label = "element",
                      .y_label = "output",
                      .series = {{"RMSNorm of 1 2 3 4", places, row(rms, 0)},
                                 {"RMSNorm of 5 6 7 8", places, row(rms, 1)},
                                 {"LayerNorm of either", places, row(centred, 0)}}}}};
}

}  // namespace norm_lab
