// Elementary functions without branches or tables, so that GCC vectorises the loops that call them.
//
// The float versions are good to 2 ulp (about 2e-7 relative) over the whole range and treat
// infinities, NaN and subnormals as the C library does; tests/ops/vec_math_test.cpp holds them to
// that. The double versions are the C library's. Needs -fno-trapping-math (for if-conversion);
// correct without it. Source: argument reduction and polynomials of the Cephes library (S.
// Moshier); erf by N. Juffa.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace norma {

/// The Math of the CPU, for formulas (ops/formulas).
struct VecMath {
  static float exp(float x) {
    // Beyond these limits the result is inf or 0. NaN passes both comparisons and stays.
    x = x > 89.0F ? 89.0F : x;
    x = x < -104.0F ? -104.0F : x;
    // n = round(x / ln 2): adding 1.5 * 2^23 leaves the integer in the low bits of the sum.
    const float magic = 12582912.0F;
    const float shifted = x * 1.44269504088896341F + magic;
    const float n = shifted - magic;
    const std::uint32_t n_bits = std::bit_cast<std::uint32_t>(shifted) - 0x4B400000U;
    const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    const float value = p * (r * r) + r + 1.0F;
    // 2^n in two factors: n runs from -150 (subnormal results) to 128 (overflow).
    const std::uint32_t half = static_cast<std::uint32_t>(static_cast<std::int32_t>(n_bits) >> 1);
    const std::uint32_t rest = n_bits - half;
    return value * std::bit_cast<float>((half + 127U) << 23) *
           std::bit_cast<float>((rest + 127U) << 23);
  }

  /// exp(x) for x <= 0 (rounding may bring 0 slightly above), a third cheaper: below e^-87 it gives
  /// 0.
  static float exp_nonpositive(float x) {
    const float bounded = x < -87.0F ? -87.0F : x;
    const float magic = 12582912.0F;
    const float shifted = bounded * 1.44269504088896341F + magic;
    const float n = shifted - magic;
    const float r = (bounded - n * 0.693359375F) + n * 2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    const float value = p * (r * r) + r + 1.0F;
    const float scale =
        std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) - 0x4B400000U + 127U) << 23);
    return x < -87.0F ? 0.0F : value * scale;
  }

  static float log(float x) {
    const bool subnormal = x < 1.17549435e-38F;
    const float scaled = subnormal ? x * 8388608.0F : x;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(scaled);
    // x = 2^e * m with m in [sqrt(1/2), sqrt(2)).
    const std::uint32_t offset = bits - 0x3F3504F3U;
    const float e =
        static_cast<float>(static_cast<std::int32_t>(offset) >> 23) - (subnormal ? 23.0F : 0.0F);
    const float f = std::bit_cast<float>((offset & 0x007FFFFFU) + 0x3F3504F3U) - 1.0F;
    const float f2 = f * f;
    float p = 7.0376836292e-2F;
    p = p * f - 1.1514610310e-1F;
    p = p * f + 1.1676998740e-1F;
    p = p * f - 1.2420140846e-1F;
    p = p * f + 1.4249322787e-1F;
    p = p * f - 1.6668057665e-1F;
    p = p * f + 2.0000714765e-1F;
    p = p * f - 2.4999993993e-1F;
    p = p * f + 3.3333331174e-1F;
    const float tail = p * f * f2 - 2.12194440e-4F * e - 0.5F * f2;
    float result = f + tail + 0.693359375F * e;
    result = x == 0.0F ? -std::numeric_limits<float>::infinity() : result;
    result = x < 0.0F ? std::numeric_limits<float>::quiet_NaN() : result;
    result = x > std::numeric_limits<float>::max() ? x : result;
    return x != x ? x : result;
  }

  /// log(1 + x), accurate near 0.
  static float log1p(float x) {
    const float u = 1.0F + x;
    const float log_u = log(u);
    // (u - 1) is what of x survived the addition; the rest enters to first order.
    const float rest = (x - (u - 1.0F)) / u;
    // At -1 and at infinity the rest is NaN, and log(u) alone is right.
    return rest == rest ? log_u + rest : log_u;
  }

  static float tanh(float x) {
    const float magnitude = std::fabs(x);
    const float z = x * x;
    float p = -5.70498872745e-3F;
    p = p * z + 2.06390887954e-2F;
    p = p * z - 5.37397155531e-2F;
    p = p * z + 1.33314422036e-1F;
    p = p * z - 3.33332819422e-1F;
    const float small = x + x * z * p;
    const float decay = exp_nonpositive(-2.0F * magnitude);
    const float large = std::copysign((1.0F - decay) / (1.0F + decay), x);
    return magnitude < 0.625F ? small : large;
  }

  static float sigmoid(float x) {
    const float decay = exp_nonpositive(-std::fabs(x));
    return (x < 0.0F ? decay : 1.0F) / (1.0F + decay);
  }

  static float erf(float x) {
    const float t = std::fabs(x);
    const float s = x * x;
    float large = -1.72853470e-5F * t + 3.83197126e-4F;
    large = large * s + (-3.88396438e-3F * t + 2.42546219e-2F);
    large = large * t - 1.06777877e-1F;
    large = large * t - 6.34846687e-1F;
    large = large * t - 1.28717512e-1F;
    large = large * t - t;
    large = std::copysign(1.0F - exp_nonpositive(large), x);
    float small = -5.96761703e-4F;
    small = small * s + 4.99119423e-3F;
    small = small * s - 2.67681349e-2F;
    small = small * s + 1.12819925e-1F;
    small = small * s - 3.76125336e-1F;
    small = small * s + 1.28379166e-1F;
    small = small * x + x;
    return t > 0.927734375F ? large : small;
  }

  /// Distribution function and density of the normal distribution.
  template <class C>
  struct Normal {
    C cdf, density;
  };

  /// By the tail's ratio to the density (Mills), a polynomial of t = 1 / (1 + 0.35 |x|): one
  /// exponential serves both, and a far tail keeps its digits, which 1 + erf loses. Coefficients by
  /// iterated least squares of the relative error, 3e-8.
  static Normal<float> normal(float x) {
    const float power = exp_nonpositive(-0.5F * x * x);
    const float t = 1.0F / (1.0F + 0.35F * std::fabs(x));
    float ratio = -2.910889316e-2F;
    ratio = ratio * t + 1.437880360e-1F;
    ratio = ratio * t - 2.553268836e-1F;
    ratio = ratio * t + 1.587215658e-1F;
    ratio = ratio * t - 2.279043981e-2F;
    ratio = ratio * t + 1.053690658e-1F;
    ratio = ratio * t + 1.198691215e-1F;
    ratio = ratio * t + 1.398567000e-1F;
    ratio = ratio * t + 1.396217117e-1F;
    const float tail = power * (ratio * t);
    return {x < 0.0F ? tail : 1.0F - tail, power * 0.398942280401432678F};
  }

  static Normal<double> normal(double x) {
    return {0.5 * std::erfc(-x * (std::numbers::sqrt2 / 2)),
            std::exp(-0.5 * x * x) * (std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2)};
  }

  static double exp(double x) { return std::exp(x); }
  static double exp_nonpositive(double x) { return std::exp(x); }
  static double log(double x) { return std::log(x); }
  static double log1p(double x) { return std::log1p(x); }
  static double tanh(double x) { return std::tanh(x); }
  static double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
  static double erf(double x) { return std::erf(x); }

  template <class C>
  static C abs(C x) {
    return std::fabs(x);
  }
  template <class C>
  static C sqrt(C x) {
    return std::sqrt(x);
  }
  template <class C>
  static C sin(C x) {
    return std::sin(x);
  }
  template <class C>
  static C cos(C x) {
    return std::cos(x);
  }
  template <class C>
  static C pow(C x, C exponent) {
    return std::pow(x, exponent);
  }
};

}  // namespace norma
