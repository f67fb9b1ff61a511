#include "norma/nn/init.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/required_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace norma::nn::init {

namespace {

/// Draws into fresh memory and copies, so that strides, versions and devices are copy_'s business.
template <class F>
const Tensor& fill_with(const Tensor& tensor, const char* operation, const F& draw) {
  check<ValueError>(tensor.defined(), operation, "tensor must be defined; got none");
  check<DTypeError>(tensor.is_floating_point(), operation,
                    "tensor must be floating-point; got {}; convert with .to(float32)",
                    tensor.dtype());
  NoGradGuard no_grad;
  const Tensor values = empty(tensor.shape(), {.dtype = tensor.dtype(), .device = tensor.device()});
  draw(values);
  tensor.copy_(values);
  return tensor;
}

struct Fans {
  double in, out;
};

Fans fans(const Tensor& tensor, const char* operation) {
  check<ValueError>(tensor.defined() && tensor.dim() >= 2, operation,
                    "fans need a weight of at least two dimensions [out, in, ...]; got {}",
                    tensor.defined() ? tensor.shape().str() : "none");
  double receptive = 1.0;
  for (std::int64_t i = 2; i < tensor.dim(); ++i) receptive *= static_cast<double>(tensor.size(i));
  return {static_cast<double>(tensor.size(1)) * receptive,
          static_cast<double>(tensor.size(0)) * receptive};
}

double kaiming_std(const Tensor& tensor, double a, FanMode mode, Nonlinearity nonlinearity,
                   const char* operation) {
  const Fans fan = fans(tensor, operation);
  return calculate_gain(nonlinearity, a) / std::sqrt(mode == FanMode::fan_in ? fan.in : fan.out);
}

/// Inverse of std::erf to double precision: Winitzki's approximation (2008), then Halley's
/// iteration.
double erfinv(double y) {
  constexpr double a = 0.147;
  if (y <= -1.0 || y >= 1.0) return std::copysign(std::numeric_limits<double>::infinity(), y);
  const double log_term = std::log1p(-y * y);
  const double b = 2.0 / (std::numbers::pi * a) + 0.5 * log_term;
  double x = std::copysign(std::sqrt(std::sqrt(b * b - log_term / a) - b), y);
  for (int i = 0; i < 3; ++i) {
    const double error = std::erf(x) - y;
    const double slope = 2.0 * std::numbers::inv_sqrtpi * std::exp(-x * x);
    if (slope == 0.0) break;
    x -= error / (slope + x * error);
  }
  return x;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

}  // namespace

double calculate_gain(Nonlinearity nonlinearity, double param) {
  switch (nonlinearity) {
    case Nonlinearity::tanh:
      return 5.0 / 3.0;
    case Nonlinearity::relu:
      return std::numbers::sqrt2;
    case Nonlinearity::leaky_relu:
      return std::sqrt(2.0 / (1.0 + param * param));
    case Nonlinearity::selu:
      return 0.75;
    case Nonlinearity::linear:
    case Nonlinearity::sigmoid:
      break;
  }
  return 1.0;
}

const Tensor& uniform_(const Tensor& tensor, double a, double b) {
  check<ValueError>(a <= b, "uniform_", "a must be at most b; got a = {}, b = {}", a, b);
  return fill_with(tensor, "uniform_",
                   [&](const Tensor& values) { norma::detail::fill_uniform(values, a, b); });
}

const Tensor& normal_(const Tensor& tensor, double mean, double std) {
  check<ValueError>(std >= 0.0, "normal_", "std must be at least 0; got {}", std);
  return fill_with(tensor, "normal_",
                   [&](const Tensor& values) { norma::detail::fill_normal(values, mean, std); });
}

const Tensor& constant_(const Tensor& tensor, double value) {
  check<ValueError>(tensor.defined(), "constant_", "tensor must be defined; got none");
  NoGradGuard no_grad;
  tensor.fill_(value);
  return tensor;
}

const Tensor& zeros_(const Tensor& tensor) { return constant_(tensor, 0.0); }
const Tensor& ones_(const Tensor& tensor) { return constant_(tensor, 1.0); }

const Tensor& trunc_normal_(const Tensor& tensor, double mean, double std, double a, double b) {
  check<ValueError>(std > 0.0 && a < b, "trunc_normal_",
                    "std must be positive and a below b; got std = {}, a = {}, b = {}", std, a, b);
  return fill_with(tensor, "trunc_normal_", [&](const Tensor& values) {
    const double low = normal_cdf((a - mean) / std);
    const double high = normal_cdf((b - mean) / std);
    std::vector<double> drawn = rand(values.shape(), {.dtype = float64}).to_vector<double>();
    for (double& value : drawn) {
      const double p = low + (high - low) * value;
      value = std::clamp(mean + std * std::numbers::sqrt2 * erfinv(2.0 * p - 1.0), a, b);
    }
    values.copy_(from_values(drawn, values.shape()).to(values.device()));
  });
}

const Tensor& xavier_uniform_(const Tensor& tensor, double gain) {
  const Fans fan = fans(tensor, "xavier_uniform_");
  const double limit = gain * std::sqrt(6.0 / (fan.in + fan.out));
  return uniform_(tensor, -limit, limit);
}

const Tensor& xavier_normal_(const Tensor& tensor, double gain) {
  const Fans fan = fans(tensor, "xavier_normal_");
  return normal_(tensor, 0.0, gain * std::sqrt(2.0 / (fan.in + fan.out)));
}

const Tensor& kaiming_uniform_(const Tensor& tensor, double a, FanMode mode,
                               Nonlinearity nonlinearity) {
  const double limit =
      std::sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity, "kaiming_uniform_");
  return uniform_(tensor, -limit, limit);
}

const Tensor& kaiming_normal_(const Tensor& tensor, double a, FanMode mode,
                              Nonlinearity nonlinearity) {
  return normal_(tensor, 0.0, kaiming_std(tensor, a, mode, nonlinearity, "kaiming_normal_"));
}

const Tensor& orthogonal_(const Tensor& tensor, double gain) {
  check<ValueError>(tensor.defined() && tensor.dim() >= 2, "orthogonal_",
                    "tensor must have at least two dimensions; got {}",
                    tensor.defined() ? tensor.shape().str() : "none");
  return fill_with(tensor, "orthogonal_", [&](const Tensor& values) {
    if (values.numel() == 0) return;
    const auto rows = static_cast<std::size_t>(values.size(0));
    const std::size_t cols = static_cast<std::size_t>(values.numel()) / rows;
    const std::size_t count = std::min(rows, cols), length = std::max(rows, cols);
    std::vector<double> vectors =
        randn({static_cast<std::int64_t>(count), static_cast<std::int64_t>(length)},
              {.dtype = float64})
            .to_vector<double>();
    // Gram-Schmidt, each vector twice, is the QR decomposition with a positive diagonal of R: Haar
    // measure.
    for (std::size_t i = 0; i < count; ++i) {
      double* current = &vectors[i * length];
      for (int pass = 0; pass < 2; ++pass)
        for (std::size_t j = 0; j < i; ++j) {
          const double* other = &vectors[j * length];
          const double dot = std::inner_product(current, current + length, other, 0.0);
          for (std::size_t k = 0; k < length; ++k) current[k] -= dot * other[k];
        }
      const double norm = std::sqrt(std::inner_product(current, current + length, current, 0.0));
      for (std::size_t k = 0; k < length; ++k) current[k] /= norm;
    }
    std::vector<double> result(rows * cols);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < cols; ++c)
        result[r * cols + c] =
            gain * (rows <= cols ? vectors[r * length + c] : vectors[c * length + r]);
    values.copy_(from_values(result, values.shape()).to(values.device()));
  });
}

}  // namespace norma::nn::init
