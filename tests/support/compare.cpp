#include "support/compare.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/gradcheck.h"
#include "norma/core/random.h"
#include "norma/core/required_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace norma::test {

namespace {

Comparison compare(const std::vector<double>& actual, const std::vector<double>& expected,
                   const Tolerance& tolerance) {
  std::size_t worst = 0;
  std::size_t count = 0;
  double worst_excess = -1.0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(actual[i]) && std::isnan(expected[i])) continue;
    if (actual[i] == expected[i]) continue;  // also infinities
    const double difference = std::abs(actual[i] - expected[i]);
    const double allowed = tolerance.atol + tolerance.rtol * std::abs(expected[i]);
    if (difference <= allowed && std::isfinite(expected[i])) continue;
    ++count;
    const double excess = std::isnan(difference) ? HUGE_VAL : difference - allowed;
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = i;
    }
  }
  if (count == 0) return {};
  return {false, fmt::format("{} of {} elements differ (rtol {}, atol {}); the worst is element "
                             "{}: {:.9g}, expected {:.9g}",
                             count, actual.size(), tolerance.rtol, tolerance.atol, worst,
                             actual[worst], expected[worst])};
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const Comparison& comparison) {
  return stream << (comparison.ok ? "equal" : comparison.text);
}

Comparison allclose(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance) {
  if (actual.defined() != expected.defined()) return {false, "one of the tensors is undefined"};
  if (!actual.defined()) return {};
  if (actual.shape() != expected.shape())
    return {false, fmt::format("shape {}, expected {}", actual.shape(), expected.shape())};
  return compare(actual.to_vector<double>(), expected.to_vector<double>(), tolerance);
}

Comparison allclose(const Tensor& actual, const std::vector<double>& expected,
                    const Tolerance& tolerance) {
  if (actual.numel() != static_cast<std::int64_t>(expected.size()))
    return {false, fmt::format("shape {}, expected {} elements", actual.shape(), expected.size())};
  return compare(actual.to_vector<double>(), expected, tolerance);
}

Comparison bitwise_equal(const Tensor& actual, const Tensor& expected) {
  if (actual.defined() != expected.defined()) return {false, "one of the tensors is undefined"};
  if (!actual.defined()) return {};
  if (actual.shape() != expected.shape() || actual.dtype() != expected.dtype())
    return {false, fmt::format("{} {}, expected {} {}", actual.dtype(), actual.shape(),
                               expected.dtype(), expected.shape())};
  const NoGradGuard no_grad;
  const Tensor a = actual.detach().contiguous().cpu();
  const Tensor b = expected.detach().contiguous().cpu();
  if (a.nbytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.nbytes()) == 0) return {};
  Comparison values = allclose(a, b, {0.0, 0.0});
  return values.ok ? Comparison{false, "bits differ (NaN or signed zero)"} : values;
}

Tensor converted(const Tensor& tensor, DType dtype) {
  if (!tensor.defined()) return {};
  const DType to = tensor.is_floating_point() ? dtype : tensor.dtype();
  const Tensor result = empty(tensor.shape(), {.dtype = to, .device = tensor.device()});
  detail::copy(result, tensor);
  return result;
}

Tensor noncontiguous(const Tensor& tensor) {
  return tensor.defined() ? norma::detail::noncontiguous_copy(tensor) : Tensor();
}

Tensor random(const Shape& shape, std::uint64_t seed, double low, double high) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  const PhiloxState state{seed, 0};
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = low + (high - low) * static_cast<double>(uniform_from_bits(philox_word(state, i)));
  return from_values(values, shape);
}

}  // namespace norma::test
