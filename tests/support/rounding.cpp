#include "support/rounding.h"

#include "support/sanitizers.h"

#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/required_ops.h"
#include "norma/ops/backend.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace norma::test {

namespace {

constexpr double noise_size = 0x1p-30;
std::uint64_t noise_state = 0;

/// 64 random signs (splitmix64).
std::uint64_t signs() {
  std::uint64_t z = noise_state += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// Gives every element of a float64 tensor a relative error of one size and random sign.
void disturb(const Tensor& tensor) {
  if (tensor.dtype() != float64) return;
  const Tensor dense = tensor.detach().contiguous();
  auto* const values = dense.data<double>();
  const std::int64_t count = dense.numel();
  for (std::int64_t i = 0; i < count; i += 64) {
    std::uint64_t bits = signs();
    const std::int64_t end = std::min<std::int64_t>(count, i + 64);
    for (std::int64_t j = i; j < end; ++j, bits >>= 1)
      values[j] *= 1.0 + ((bits & 1) != 0 ? noise_size : -noise_size);
  }
  if (dense.raw_data() != tensor.raw_data()) detail::copy(tensor, dense);
}

/// The CPU's kernels; the elementary ones, of which definitions are made, leave an error.
const Backend& noisy_backend() {
  static const Backend noisy = [] {
    using T = Backend::T;
    using I = Backend::I;
    Backend table = cpu_backend();
    table.unary = [](UnaryOp op, T x, T out) {
      cpu_backend().unary(op, x, out);
      disturb(out);
    };
    table.unary_backward = [](UnaryOp op, T x, T y, T dy, T dx) {
      cpu_backend().unary_backward(op, x, y, dy, dx);
      disturb(dx);
    };
    table.binary = [](BinaryOp op, T a, T b, T out) {
      cpu_backend().binary(op, a, b, out);
      disturb(out);
    };
    table.binary_scalar = [](BinaryOp op, T x, double scalar, bool reversed, T out) {
      cpu_backend().binary_scalar(op, x, scalar, reversed, out);
      disturb(out);
    };
    table.add_scaled = [](T out, T x, double alpha) {
      cpu_backend().add_scaled(out, x, alpha);
      disturb(out);
    };
    table.reduce = [](ReduceOp op, T x, I outer, I reduced, I inner, T out) {
      cpu_backend().reduce(op, x, outer, reduced, inner, out);
      disturb(out);
    };
    table.cumsum = [](T x, I outer, I length, I inner, bool reverse, T out) {
      cpu_backend().cumsum(x, outer, length, inner, reverse, out);
      disturb(out);
    };
    table.mean_variance = [](T x, I outer, I reduced, I inner, T mean, T variance) {
      cpu_backend().mean_variance(x, outer, reduced, inner, mean, variance);
      disturb(mean);
      disturb(variance);
    };
    table.gemm = [](bool transpose_a, bool transpose_b, double alpha, T a, T b, double beta, T c) {
      cpu_backend().gemm(transpose_a, transpose_b, alpha, a, b, beta, c);
      disturb(c);
    };
    return table;
  }();
  return noisy;
}

class NoiseGuard {
 public:
  explicit NoiseGuard(std::uint64_t seed) {
    noise_state = seed;
    set_backend(DeviceType::cpu, &noisy_backend());
  }
  ~NoiseGuard() { set_backend(DeviceType::cpu, nullptr); }
  NoiseGuard(const NoiseGuard&) = delete;
  NoiseGuard& operator=(const NoiseGuard&) = delete;
};

template <class Iterator>
double mean_of(Iterator begin, Iterator end) {
  return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
}

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 0x1p-53;
    case DType::float16:
      return 0x1p-11;
    case DType::bfloat16:
      return 0x1p-8;
    default:
      return 0x1p-24;
  }
}

/// Half the distance of the smallest numbers: what the relative rule forgets. A stored one may be
/// scaled up behind, a few times.
double half_of_smallest(DType dtype) { return dtype == float16 ? 0x1p-25 : 0x1p-134; }

double largest_finite(DType dtype) { return dtype == float16 ? 65504.0 : 3.3895313892515355e38; }

}  // namespace

std::int64_t longest_sum(const Tensor& result, const TensorList& tensors) {
  std::int64_t terms = 1;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.numel() == 0) continue;
    terms = std::max(terms, tensor.numel() / std::max<std::int64_t>(result.numel(), 1));
    for (const std::int64_t size : tensor.shape()) terms = std::max(terms, size);
    if (tensor.dim() > 1) terms = std::max(terms, tensor.numel() / tensor.size(0));
  }
  return terms;
}

std::vector<std::vector<double>> sizes_of_terms(
    const std::function<TensorList(const TensorList& inputs)>& results, const TensorList& inputs,
    const TensorList& expected) {
  std::vector<std::vector<double>> sizes;
  std::int64_t elements = 0;
  for (const Tensor& tensor : expected) {
    sizes.emplace_back(static_cast<std::size_t>(tensor.numel()), 0.0);
    elements += tensor.numel();
  }
  const int runs = elements > 4096 ? 2 : 4;  // many elements make up for few runs
  for (int run = 0; run < runs; ++run) {
    const NoiseGuard noise(static_cast<std::uint64_t>(run) + 1);
    TensorList disturbed;
    for (const Tensor& input : inputs) {
      disturbed.push_back(input.defined() ? input.detach().clone() : Tensor());
      if (input.defined()) disturb(disturbed.back());
    }
    const TensorList moved = results(disturbed);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!expected[i].is_floating_point()) continue;
      const std::vector<double> from = expected[i].to_vector<double>();
      const std::vector<double> to = moved[i].to_vector<double>();
      for (std::size_t j = 0; j < from.size(); ++j) {
        const double change = (to[j] - from[j]) / noise_size;
        if (std::isfinite(change)) sizes[i][j] += change * change / runs;
      }
    }
  }
  // A few runs may find the errors of one element small by chance, but not those of its row, nor of
  // all.
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<double>& squares = sizes[i];
    if (squares.empty()) continue;
    const double mean = mean_of(squares.begin(), squares.end());
    const auto width = expected[i].dim() > 1 ? expected[i].size(-1) : 1;
    for (auto row = squares.begin(); row != squares.end(); row += width) {
      const double floor = std::max(mean, mean_of(row, row + width));
      for (auto square = row; square != row + width; ++square)
        *square = std::sqrt(std::max(*square, floor));
    }
  }
  return sizes;
}

Comparison within_rounding(const Tensor& actual, const Tensor& expected,
                           const std::vector<double>& sizes, std::int64_t terms, int stored) {
  if (actual.shape() != expected.shape())
    return {false, fmt::format("shape {}, expected {}", actual.shape(), expected.shape())};
  const DType dtype = actual.dtype();
  if (!actual.is_floating_point()) return allclose(actual, expected, {0.0, 0.0});
  const double u = unit_roundoff(dtype);
  // The reference in float64 rounds as much as what is compared with it.
  const double accumulate = dtype == float64 ? std::sqrt(2.0) * u : 0x1p-24;
  const auto n = static_cast<double>(terms);
  const double chain = sanitized ? n : std::max(std::min(n, 64.0), n / 32.0);
  const double sigma =
      std::sqrt((stored * u * u + (1.0 + chain / 2.0) * accumulate * accumulate) / 3.0);
  const std::vector<double> a = actual.to_vector<double>();
  const std::vector<double> e = expected.to_vector<double>();
  std::size_t count = 0;
  std::size_t worst = 0;
  double worst_ratio = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(e[i])) continue;
    if (a[i] == e[i]) continue;  // also infinities
    if (std::isinf(a[i]) && std::abs(e[i]) > largest_finite(dtype) && a[i] * e[i] > 0) continue;
    const double allowed = u * std::abs(e[i]) + 6.0 * sigma * (sizes[i] + std::abs(e[i])) +
                           (1 + 8 * stored) * half_of_smallest(dtype);
    const double difference = std::abs(a[i] - e[i]);
    if (difference <= allowed) continue;
    ++count;
    const double ratio = std::isfinite(difference) ? difference / allowed : HUGE_VAL;
    if (ratio > worst_ratio) {
      worst_ratio = ratio;
      worst = i;
    }
  }
  if (count == 0) return {};
  return {false, fmt::format("{} of {} elements differ by more than rounding; the worst is element "
                             "{}: {:.9g}, expected {:.9g}, {:.3g} times what is allowed (size of "
                             "terms {:.3g}, {} terms in the longest sum, {} stored values)",
                             count, a.size(), worst, a[worst], e[worst], worst_ratio, sizes[worst],
                             terms, stored)};
}

}  // namespace norma::test
