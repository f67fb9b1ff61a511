// The vectorised elementary functions against the C library in double, over all of float.
#include "support/catch.h"

#include "norma/core/factory.h"
#include "norma/ops/activation.h"
#include "support/compare.h"

#include "norma/ops/cpu/vec_math.h"

#include <cmath>

namespace norma::test {
namespace {

/// Distance in units of the last place of the right answer; huge where only one is NaN or infinite.
double ulps(float actual, double expected) {
  if (std::isnan(expected)) return std::isnan(actual) ? 0.0 : 1e30;
  const auto rounded = static_cast<float>(expected);
  if (std::isinf(rounded) || std::isinf(actual)) return actual == rounded ? 0.0 : 1e30;
  const int exponent = rounded == 0.0F ? -149 : std::max(std::ilogb(rounded) - 23, -149);
  return std::abs(actual - expected) / std::ldexp(1.0, exponent);
}

template <class Approximation, class Exact>
void check_all_floats(const Approximation& approximation, const Exact& exact, double limit) {
  double worst = 0.0;
  float where = 0.0F;
  // A prime step: every exponent, both signs, subnormals, infinities and NaN come by.
  for (std::uint64_t bits = 0; bits < (1ULL << 32); bits += 5003) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const double error = ulps(approximation(x), exact(static_cast<double>(x)));
    if (error > worst) {
      worst = error;
      where = x;
    }
  }
  for (const float x : {0.0F, -0.0F, INFINITY, -INFINITY, NAN, 1.0F, -1.0F, 88.7F, 89.0F, -104.0F})
    worst = std::max(worst, ulps(approximation(x), exact(static_cast<double>(x))));
  INFO("worst at " << where);
  CHECK(worst <= limit);
}

}  // namespace

TEST_CASE("vectorised functions are right to two units in the last place") {
  SECTION("exp") {
    check_all_floats([](float x) { return VecMath::exp(x); }, [](double x) { return std::exp(x); },
                     2);
  }
  SECTION("exp_nonpositive, which gives 0 from e^-87 down") {
    const auto bounded = [](auto x) { return x > 0 ? -x : x; };
    check_all_floats([&](float x) { return VecMath::exp_nonpositive(bounded(x)); },
                     [&](double x) { return bounded(x) < -87.0 ? 0.0 : std::exp(bounded(x)); }, 2);
  }
  SECTION("sigmoid, which gives 0 from -87 down") {
    check_all_floats([](float x) { return VecMath::sigmoid(x); },
                     [](double x) { return x < -87.0 ? 0.0 : 1.0 / (1.0 + std::exp(-x)); }, 3);
  }
  SECTION("log") {
    check_all_floats([](float x) { return VecMath::log(x); }, [](double x) { return std::log(x); },
                     2);
  }
  SECTION("log1p") {
    check_all_floats([](float x) { return VecMath::log1p(x); },
                     [](double x) { return std::log1p(x); }, 2);
  }
  SECTION("tanh") {
    check_all_floats([](float x) { return VecMath::tanh(x); },
                     [](double x) { return std::tanh(x); }, 2);
  }
  SECTION("erf") {
    check_all_floats([](float x) { return VecMath::erf(x); }, [](double x) { return std::erf(x); },
                     2);
  }
  SECTION("the normal distribution function and its density") {
    // x^2 / 2 is rounded before the exponential, which multiplies that error by itself.
    const auto within = [](float x) { return x > 3.0F ? 3.0F : x < -3.0F ? -3.0F : x; };
    check_all_floats(
        [&](float x) { return VecMath::normal(within(x)).cdf; },
        [&](double x) { return 0.5 * std::erfc(-within(static_cast<float>(x)) / std::sqrt(2.0)); },
        8);
    check_all_floats(
        [&](float x) { return VecMath::normal(within(x)).density; },
        [&](double x) { return VecMath::normal(double{within(static_cast<float>(x))}).density; },
        8);
    CHECK(VecMath::normal(-INFINITY).cdf == 0.0F);
    CHECK(VecMath::normal(INFINITY).cdf == 1.0F);
    CHECK(VecMath::normal(-12.0F).cdf == Approx(1.776482e-33).epsilon(1e-4));
  }
}

TEST_CASE("an element does not depend on where in a tensor it stands") {
  // Vector loop and scalar tail must round alike, or results would change with the number of
  // threads.
  const Tensor x = random({1000}, 1, -5.0, 5.0).to(float32);
  const std::vector<std::pair<const char*, Tensor (*)(const Tensor&)>> functions = {
      {"exp", exp},
      {"tanh", tanh},
      {"sigmoid", sigmoid},
      {"erf", erf},
      {"silu", silu},
      {"log1p", [](const Tensor& v) { return log1p(abs(v)); }},
      {"gelu", [](const Tensor& v) { return gelu(v); }},
      {"softplus", [](const Tensor& v) { return softplus(v); }}};
  for (const auto& [name, function] : functions) {
    INFO(name);
    const Tensor whole = function(x);
    for (const std::int64_t start : {1, 3, 997})
      CHECK(bitwise_equal(function(x.narrow(0, start, 1000 - start).clone()),
                          whole.narrow(0, start, 1000 - start).clone()));
  }
}

}  // namespace norma::test
