#include "norma/core/factory.h"

#include "norma/core/required_ops.h"
#include "norma/core/tensor_impl.h"

#include <algorithm>
#include <cmath>

namespace norma {

namespace {

Tensor make(const Shape& shape, const TensorOptions& options, DType fallback = DType::float32) {
  Tensor result = detail::make_tensor(shape, options.dtype.value_or(fallback), options.device);
  if (options.requires_grad) result.requires_grad_();
  return result;
}

/// A CPU tensor of doubles or int64, moved to where and what the options say.
Tensor finish(const Tensor& values, const TensorOptions& options, DType fallback) {
  Tensor result = make(values.shape(), options, fallback);
  detail::copy(result, values);
  return result;
}

/// `count` values; a tensor at once, because memory that is not there is an error of the allocator.
template <class T, class F>
Tensor sequence(std::int64_t count, const F& value, const TensorOptions& options, DType fallback) {
  const Tensor host = detail::make_tensor({count}, dtype_of<T>, cpu);
  for (std::int64_t i = 0; i < count; ++i) host.data<T>()[i] = value(i);
  return finish(host, options, fallback);
}

TensorOptions like(const Tensor& other) {
  return {.dtype = other.dtype(), .device = other.device()};
}

bool is_whole(double value) { return std::floor(value) == value; }

void check_floating(const TensorOptions& options, const char* operation) {
  check<DTypeError>(is_floating_point(options.dtype.value_or(DType::float32)), operation,
                    "the dtype must be floating-point; got {}; use randint for integers",
                    options.dtype.value_or(DType::float32));
}

}  // namespace

Tensor empty(const Shape& shape, const TensorOptions& options) { return make(shape, options); }
Tensor zeros(const Shape& shape, const TensorOptions& options) { return full(shape, 0.0, options); }
Tensor ones(const Shape& shape, const TensorOptions& options) { return full(shape, 1.0, options); }

Tensor full(const Shape& shape, double value, const TensorOptions& options) {
  Tensor result = make(shape, options);
  detail::fill(result, value);
  return result;
}

Tensor empty_like(const Tensor& other) { return empty(other.shape(), like(other)); }
Tensor zeros_like(const Tensor& other) { return zeros(other.shape(), like(other)); }
Tensor ones_like(const Tensor& other) { return ones(other.shape(), like(other)); }
Tensor full_like(const Tensor& other, double value) {
  return full(other.shape(), value, like(other));
}

Tensor arange(double start, double end, double step, const TensorOptions& options) {
  check(step != 0.0 && (end - start) / step >= 0.0 && std::isfinite((end - start) / step), "arange",
        "step must lead from start to end; got start {}, end {}, step {}", start, end, step);
  const double exact_count = std::ceil((end - start) / step);
  check<ShapeError>(exact_count < 0x1p48, "arange",
                    "the values must fit into memory; got {} of them (start {}, end {}, step {})",
                    exact_count, start, end, step);
  const auto count = static_cast<std::int64_t>(exact_count);
  const bool whole = is_whole(start) && is_whole(end) && is_whole(step);
  return sequence<double>(
      count, [&](std::int64_t i) { return start + static_cast<double>(i) * step; }, options,
      whole ? DType::int64 : DType::float32);
}

Tensor arange(double end, const TensorOptions& options) { return arange(0.0, end, 1.0, options); }

Tensor linspace(double start, double end, std::int64_t steps, const TensorOptions& options) {
  check(steps >= 0, "linspace", "steps must not be negative; got {}", steps);
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0.0;
  // From both ends, so that the last value is exactly `end`.
  const auto value = [&](std::int64_t i) {
    return i < steps - i ? start + static_cast<double>(i) * step
                         : end - static_cast<double>(steps - 1 - i) * step;
  };
  return sequence<double>(steps, value, options, DType::float32);
}

Tensor eye(std::int64_t n, const TensorOptions& options) {
  check<ShapeError>(n >= 0, "eye", "n must not be negative; got {}", n);
  // As a tensor at once: its size is checked before n * n can overflow.
  const Tensor host = detail::make_tensor({n, n}, DType::float64, cpu);
  detail::fill(host, 0.0);
  for (std::int64_t i = 0; i < n; ++i) host.data<double>()[i * n + i] = 1.0;
  return finish(host, options, DType::float32);
}

Tensor rand(const Shape& shape, const TensorOptions& options) {
  check_floating(options, "rand");
  Tensor result = make(shape, options);
  detail::fill_uniform(result, 0.0, 1.0);
  return result;
}

Tensor randn(const Shape& shape, const TensorOptions& options) {
  check_floating(options, "randn");
  Tensor result = make(shape, options);
  detail::fill_normal(result, 0.0, 1.0);
  return result;
}

Tensor rand_like(const Tensor& other) { return rand(other.shape(), like(other)); }
Tensor randn_like(const Tensor& other) { return randn(other.shape(), like(other)); }

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape,
               const TensorOptions& options) {
  check(low < high, "randint", "low must be below high; got {} and {}", low, high);
  Tensor result = make(shape, options, DType::int64);
  detail::fill_randint(result, low, high);
  return result;
}

Tensor randperm(std::int64_t n, const TensorOptions& options) {
  check(n >= 0, "randperm", "n must not be negative; got {}", n);
  const Tensor result = sequence<std::int64_t>(
      n, [](std::int64_t i) { return i; }, {}, DType::int64);
  std::int64_t* const order = result.data<std::int64_t>();
  const PhiloxState state = default_generator(options.device).reserve(2 * n);
  // Fisher-Yates; two words an element make the modulo bias vanish (below n / 2^64).
  for (std::int64_t i = n - 1; i > 0; --i) {
    const auto at = static_cast<std::uint64_t>(2 * i);
    const std::uint64_t bits =
        (std::uint64_t{philox_word(state, at)} << 32) | philox_word(state, at + 1);
    std::swap(order[i], order[bits % static_cast<std::uint64_t>(i + 1)]);
  }
  return finish(result, options, DType::int64);
}

template <class T>
Tensor from_values(std::span<const T> values, const Shape& shape, const TensorOptions& options) {
  check<ShapeError>(static_cast<std::int64_t>(values.size()) == shape.numel(), "from_values",
                    "shape {} needs {} values; got {}", shape, shape.numel(), values.size());
  const Tensor host = detail::make_tensor(shape, dtype_of<T>, cpu);
  std::copy(values.begin(), values.end(), host.data<T>());
  return finish(host, options, dtype_of<T>);
}
template Tensor from_values(std::span<const float>, const Shape&, const TensorOptions&);
template Tensor from_values(std::span<const double>, const Shape&, const TensorOptions&);
template Tensor from_values(std::span<const std::int32_t>, const Shape&, const TensorOptions&);
template Tensor from_values(std::span<const std::int64_t>, const Shape&, const TensorOptions&);
template Tensor from_values(std::span<const bool>, const Shape&, const TensorOptions&);

namespace detail {

Tensor tensor_from_doubles(const std::vector<double>& values, const Shape& shape, DType fallback,
                           const TensorOptions& options) {
  const Tensor host = make_tensor(shape, DType::float64, cpu);
  std::copy(values.begin(), values.end(), host.data<double>());
  return finish(host, options, fallback);
}

}  // namespace detail

}  // namespace norma
