// R16, R17: LN(x + d) = LN(x) and LN(l x) = LN(x), with the rounding of real numbers.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/norm.h"

namespace norm_lab {

using namespace norma;

Result shift_and_scale(const Settings& settings) {
  manual_seed(settings.seed);
  const Tensor x = randn({32, 10});
  const Tensor precise = x.to(float64);
  const auto norm = [](const Tensor& t, double eps) { return layer_norm(t, {10}, {}, {}, eps); };
  const auto shift_error = [&](const Tensor& t, double shift) {
    return difference(norm(t + shift, 1e-5), norm(t, 1e-5));
  };
  const auto scale_error = [&](const Tensor& t, double factor, double eps) {
    return difference(norm(t * factor, eps), norm(t, eps));
  };

  Series single{"float32", {}, {}}, wide{"float64", {}, {}};
  for (const double shift : {1.0, 10.0, 100.0, 1e3, 1e4}) {
    single.x.push_back(shift);
    wide.x.push_back(shift);
    single.y.push_back(shift_error(x, shift));
    wide.y.push_back(shift_error(precise, shift));
  }
  return {
      .claim =
          "LayerNorm does not see a shift (error 0.00e+00 for x + 100) nor a factor (error "
          "1.19e-07 for 5 x).",
      .source = "R16, R17; the second and third article",
      .setting = "32 vectors of width 10, N(0, 1), largest error of all elements",
      .rows = {{"x + 100, float32, eps 1e-5", at_most(0), shift_error(x, 100)},
               {"the same, as simulated", within_factor(8e-6, 4), shift_error(x, 100),
                Tests::reference},
               {"x + 100, float64", at_most(1e-12), shift_error(precise, 100), Tests::reference},
               {"5 x, float32, eps 1e-5", at_most(2.4e-7), scale_error(x, 5, 1e-5)},
               {"the same, as simulated", within_factor(1.3e-5, 6), scale_error(x, 5, 1e-5),
                Tests::reference},
               {"5 x, float32, eps 0", at_most(4.8e-7), scale_error(x, 5, 0)},
               {"5 x, float64, eps 0", at_most(1e-14), scale_error(precise, 5, 0),
                Tests::reference},
               {"−5 x turns the sign: |LN(−5 x) + LN(x)|, eps 0", at_most(4.8e-7),
                difference(norm(x * -5.0, 0) * -1.0, norm(x, 0)), Tests::reference}},
      .depends_on =
          "eps and dtype: the factor 5 is invisible with eps 0 and visible with 1e-5, and "
          "a shift of 100 costs float32 two digits of every element",
      .finding =
          "The identities are exact in real numbers only. A negative factor turns the sign, "
          "whatever the eps.",
      .charts = {{.title = "Error of LN(x + d) against LN(x)",
                  .x_label = "shift d",
                  .y_label = "largest error",
                  .log_x = true,
                  .log_y = true,
                  .series = {single, wide}}}};
}

}  // namespace norm_lab
