#include "norma/nn/init.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/required_ops.h"
#include "norma/ops/elementwise.h"

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

/// The same from values that `compute(shape)` gives in row-major order.
template <class F>
const Tensor& fill_from_host(const Tensor& tensor, const char* operation, const F& compute) {
  return fill_with(tensor, operation, [&](const Tensor& values) {
    if (values.numel() == 0) return;
    values.copy_(from_values(compute(values.shape()), values.shape()).to(values.device()));
  });
}

void check_rank(const Tensor& tensor, std::int64_t low, std::int64_t high, const char* operation) {
  const bool fits = tensor.defined() && tensor.dim() >= low && tensor.dim() <= high;
  check<ValueError>(fits, operation, "tensor must have {} dimensions; got {}",
                    low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high),
                    tensor.defined() ? tensor.shape().str() : "none");
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
  return fill_from_host(tensor, "trunc_normal_", [&](const Shape& shape) {
    const double low = normal_cdf((a - mean) / std);
    const double high = normal_cdf((b - mean) / std);
    std::vector<double> values = rand(shape, {.dtype = float64}).to_vector<double>();
    for (double& value : values) {
      const double p = low + (high - low) * value;
      value = std::clamp(mean + std * std::numbers::sqrt2 * erfinv(2.0 * p - 1.0), a, b);
    }
    return values;
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
  check_rank(tensor, 2, Shape::max_rank, "orthogonal_");
  return fill_from_host(tensor, "orthogonal_", [&](const Shape& shape) {
    const auto rows = static_cast<std::size_t>(shape[0]);
    const std::size_t cols = static_cast<std::size_t>(shape.numel()) / rows;
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
    return result;
  });
}

const Tensor& eye_(const Tensor& tensor) {
  check_rank(tensor, 2, 2, "eye_");
  return fill_from_host(tensor, "eye_", [](const Shape& shape) {
    std::vector<double> values(static_cast<std::size_t>(shape.numel()));
    for (std::int64_t i = 0; i < std::min(shape[0], shape[1]); ++i)
      values[static_cast<std::size_t>(i * shape[1] + i)] = 1.0;
    return values;
  });
}

const Tensor& dirac_(const Tensor& tensor, std::int64_t groups) {
  check_rank(tensor, 3, 5, "dirac_");
  check<ValueError>(groups > 0 && tensor.size(0) % groups == 0, "dirac_",
                    "groups must divide the output channels; got {} groups of shape {}", groups,
                    tensor.shape());
  return fill_from_host(tensor, "dirac_", [&](const Shape& shape) {
    std::int64_t kernel = 1, middle = 0;
    for (std::int64_t d = 2; d < shape.size(); ++d) {
      kernel *= shape[d];
      middle = middle * shape[d] + shape[d] / 2;
    }
    std::vector<double> values(static_cast<std::size_t>(shape.numel()));
    const std::int64_t outputs = shape[0] / groups, inputs = shape[1];
    for (std::int64_t out = 0; out < shape[0]; ++out)
      if (const std::int64_t in = out % outputs; in < inputs)
        values[static_cast<std::size_t>((out * inputs + in) * kernel + middle)] = 1.0;
    return values;
  });
}

const Tensor& sparse_(const Tensor& tensor, double sparsity, double std) {
  check_rank(tensor, 2, 2, "sparse_");
  check<ValueError>(sparsity >= 0.0 && sparsity <= 1.0 && std >= 0.0, "sparse_",
                    "sparsity must be in [0, 1] and std at least 0; got {} and {}", sparsity, std);
  return fill_from_host(tensor, "sparse_", [&](const Shape& shape) {
    std::vector<double> values = (randn(shape, {.dtype = float64}) * std).to_vector<double>();
    const auto zeros =
        static_cast<std::size_t>(std::ceil(sparsity * static_cast<double>(shape[0])));
    for (std::int64_t column = 0; column < shape[1]; ++column) {
      const std::vector<std::int64_t> rows = randperm(shape[0]).to_vector<std::int64_t>();
      for (std::size_t i = 0; i < zeros; ++i)
        values[static_cast<std::size_t>(rows[i] * shape[1] + column)] = 0.0;
    }
    return values;
  });
}

}  // namespace norma::nn::init
