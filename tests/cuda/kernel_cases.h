// What the tests of the CUDA kernels share.
#pragma once

#include "cuda/device_cases.h"
#include "norma/core/factory.h"
#include "norma/cuda/emulator/schedule.h"
#include "norma/ops/elementwise.h"
#include "support/compare.h"
#include "support/sanitizers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace norma::test {

// Some of them under sanitizers: the types share their templates.
inline const std::vector<DType> floating_dtypes =
    sanitized ? std::vector<DType>{float32, bfloat16}
              : std::vector<DType>{float32, float64, float16, bfloat16};
inline const std::vector<DType> all_dtypes =
    sanitized ? std::vector<DType>{float32, bfloat16, int32}
              : std::vector<DType>{float32, float64, float16, bfloat16, int64, int32, bool_};

/// (rows, width) of bugs in the wild: warps and blocks that are not full, tails of vectors, and one
/// width for each geometry of the kernels (cuda/kernels/rows_launch.cuh).
struct KernelShape {
  std::int64_t rows, width;
};
inline constexpr KernelShape kernel_shapes[] = {
    {1, 1},    {2, 3},    {31, 31},  {33, 32},  {31, 33},   {2, 64},
    {2, 255},  {17, 256}, {5, 768},  {2, 1023}, {2, 1024},  {2, 1025},
    {3, 2048}, {2, 4096}, {1, 8197}, {1, 8192}, {1, 16384}, {1, 20000}};

/// `tensor` on `device`, `offset` elements behind an aligned address; undefined stays so.
inline Tensor placed(const Tensor& tensor, const Device& device, std::int64_t offset = 0) {
  if (!tensor.defined()) return {};
  const Tensor buffer =
      empty({tensor.numel() + offset}, {.dtype = tensor.dtype(), .device = device});
  const Tensor view = buffer.narrow(0, offset, tensor.numel()).view(tensor.shape());
  view.copy_(tensor);
  return view;
}
/// Uniform in [low, high] in `dtype`, on the CPU.
inline Tensor values(const Shape& shape, DType dtype, std::uint64_t seed, double low = -1.0,
                     double high = 1.0) {
  return converted(random(shape, seed, low, high), dtype);
}
/// Numbers of any dtype in [-4, 4], on the CPU: fractions, or whole, or true and false. Those of
/// floating-point types begin with what needs care where there are enough.
inline Tensor numbers(const Shape& shape, DType dtype, std::uint64_t seed) {
  const Tensor x = random(shape, seed, -4.0, 4.0);
  if (dtype == bool_) return x > 0.0;
  if (is_floating_point(dtype) && x.numel() >= 64) {
    const double inf = std::numeric_limits<double>::infinity();
    const double special[] = {0.0, -0.0, inf, -inf, std::numeric_limits<double>::quiet_NaN(), 1e4};
    // Another order for another seed, so that two operands meet in all combinations.
    for (std::size_t i = 0; i < 36; ++i)
      x.data<double>()[i] = special[seed % 2 == 0 ? i % 6 : i / 6];
  }
  return x.to(dtype);
}
/// Statistics of `dtype`.
inline DType accumulate_of(DType dtype) { return dtype == float64 ? float64 : float32; }
/// Sevens for a kernel to overwrite.
inline Tensor output(const Shape& shape, DType dtype, const Device& device) {
  return full(shape, 7.0, {.dtype = dtype, .device = device});
}

/// Rounding of one result, and of sums over `terms` products of size up to 1 in random order.
inline Tolerance tolerance_of(DType dtype, std::int64_t terms) {
  const double accumulate = dtype == float64 ? 2.3e-16 : 1.2e-7;
  const double storage = dtype == float16 ? 9.8e-4 : dtype == bfloat16 ? 7.9e-3 : accumulate;
  const double length = std::sqrt(static_cast<double>(terms) + 16.0);
  return {2.0 * storage + 16.0 * accumulate, 16.0 * accumulate * length + storage};
}

/// `run(device)` gives the same on the CPU and on cuda(0); `terms(i)`: summands of output i.
template <class Run, class Terms>
void check_devices(const Run& run, DType dtype, const Terms& terms) {
  const TensorList expected = run(cpu), actual = run(cuda(0));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("output " << i);
    CHECK(allclose(actual[i], expected[i], tolerance_of(dtype, terms(i))));
  }
}

/// `run(cuda(0))` gives the same bits whatever the order of threads and blocks.
template <class Run>
void check_repeats(const Run& run) {
  const TensorList first = run(cuda(0));
  for (const emulator::Schedule& schedule : emulator::all_schedules(1)) {
    const emulator::ScheduleGuard guard(schedule);
    const TensorList again = run(cuda(0));
    for (std::size_t i = 0; i < first.size(); ++i) {
      INFO("output " << i);
      CHECK(bitwise_equal(again[i], first[i]));
    }
  }
}

}  // namespace norma::test
