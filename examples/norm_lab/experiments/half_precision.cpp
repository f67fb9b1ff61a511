// R25: why statistics are float32 whatever the storage.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norma/core/factory.h"
#include "norma/core/half.h"
#include "norma/core/random.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/norm.h"

#include <cmath>

namespace norm_lab {

using namespace norma;

namespace {

/// The mean of squares with every step rounded to H.
template <class H>
double mean_square(const std::vector<float>& x) {
  H sum = 0.0F;
  for (const float value : x) sum = H(float(sum) + float(H(float(H(value)) * float(H(value)))));
  return float(sum) / static_cast<float>(x.size());
}

/// Relative error of the root mean square of a row of N(0, size²) with sums in H.
template <class H>
double error(double size) {
  const std::vector<float> x = (randn({512}) * size).to_vector<float>();
  double squares = 0.0;
  for (const float value : x) squares += static_cast<double>(value) * value;
  const double exact = std::sqrt(squares / static_cast<double>(x.size()));
  return std::abs(std::sqrt(mean_square<H>(x)) - exact) / exact;
}

}  // namespace

Result half_precision(const Settings& settings) {
  manual_seed(settings.seed);
  const Half square_of_256 = Half(256.0F * 256.0F);
  const double smallest_normal = std::pow(2.0, -14);
  const std::vector<float> twelves(512, 12.0F);
  const Tensor large = (300.0 * randn({64, 512})).to(float16);
  const Tensor y = rms_norm(large, {512}, {}, 1e-6);
  const double kernel = difference(y, rms_norm(large.to(float64), {512}, {}, 1e-6));

  const std::vector<double> sizes = {1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100};
  Series half{"sums in float16", sizes, {}}, brain{"sums in bfloat16", sizes, {}},
      single{"sums in float32", sizes, {}};
  for (const double size : sizes) {
    half.y.push_back(error<Half>(size));
    brain.y.push_back(error<BFloat16>(size));
    single.y.push_back(error<float>(size));
  }
  return {.claim =
              "Statistics must be float32 under mixed precision: in float16 squares overflow from "
              "256 on, 512 elements of 12 overflow their sum, and eps 1e-8 is 0.",
          .source = "R25; the third article",
          .setting = "every step rounded to the 16-bit type; rows of 512 values of N(0, size²)",
          .rows = {{"256² is infinite in float16", is(true),
                    static_cast<double>(std::isinf(float(square_of_256)))},
                   {"mean square of 512 times 12 is infinite in float16", is(true),
                    static_cast<double>(std::isinf(mean_square<Half>(twelves)))},
                   {"1e-8 in float16", near(0, 0), float(Half(1e-8F))},
                   {"1e-6 in float16 is subnormal", is(true),
                    static_cast<double>(Half(1e-6F) > 0.0F && Half(1e-6F) < smallest_normal)},
                   {"rms_norm of float16 rows of N(0, 300²): largest error", at_most(4e-3), kernel},
                   {"bfloat16 sums: relative error of the rms at size 1", at_least(0.02),
                    brain.y[4], Tests::reference}},
          .finding =
              "bfloat16 never overflows here, but with 8 significant bits a sum of 512 squares "
              "stops growing long before its end.",
          .charts = {{.title = "Error of a root mean square with sums in 16 bits",
                      .x_label = "size of the values",
                      .y_label = "relative error",
                      .log_x = true,
                      .log_y = true,
                      .series = {half, brain, single}}}};
}

}  // namespace norm_lab
