// The CUDA kernels of the column norms, the soft cap and dropout against the CPU's.
#include "cuda/kernel_cases.h"
#include "norma/ops/elementwise.h"
#include "support/devices.h"

namespace norma::test {
namespace {

struct Extent {
  std::int64_t outer, channels, inner;
};
constexpr Extent extents[] = {{1, 1, 1},   {5, 3, 1},   {515, 33, 1}, {2, 3, 7},
                              {3, 2, 300}, {2, 40, 33}, {0, 4, 1}};

Tolerance tolerance_of(DType dtype) {
  return dtype == float64   ? Tolerance{1e-12, 1e-12}
         : dtype == float32 ? Tolerance{1e-5, 1e-5}
         : dtype == float16 ? Tolerance{2e-3, 2e-3}
                            : Tolerance{1.6e-2, 1.6e-2};
}

/// All results of the column kernels on one device.
TensorList run(const Extent& e, DType dtype, bool masked, bool centred, const Device& device) {
  const Shape shape{e.outer, e.channels, e.inner};
  const DType statistic = dtype == float64 ? float64 : float32;
  const auto on = [&](const Tensor& t) { return on_device(t, device); };
  const auto blank = [&](const Shape& s, DType type) {
    return full(s, 7.0, {.dtype = type, .device = device});
  };
  // A mean far from 0: a variance by sums of squares would lose it.
  const Tensor x = on(converted(random(shape, 1, 99.0, 101.0), dtype));
  const Tensor dy = on(converted(random(shape, 2), dtype));
  const Tensor mask = masked ? on(random({e.outer, e.inner}, 3) > 0.3) : Tensor();
  const Tensor mean = centred ? blank({e.channels}, statistic) : Tensor();
  const Tensor variance = blank({e.channels}, statistic), count = blank({1}, statistic);
  const Tensor sum_dy = blank({e.channels}, statistic), sum_dy_d = blank({e.channels}, statistic);
  const Tensor plain = blank(shape, dtype), both = blank(shape, dtype);
  const Backend& kernels = backend(device);
  kernels.column_statistics(x, mask, mean, variance, count);
  // A mean that both devices know to the last bit: x - mean cancels.
  const Tensor centre =
      centred ? on(converted(random({e.channels}, 7, 99.5, 100.5), statistic)) : Tensor();
  kernels.column_sums(x, centre, dy, sum_dy, sum_dy_d);
  const Tensor a = on(converted(random({e.channels}, 4), statistic)),
               b = on(converted(random({e.channels}, 5, 0.0, 0.01), statistic)),
               c = on(converted(random({e.channels}, 6), statistic));
  kernels.column_affine(x, mask, centre, Tensor(), Tensor(), b, c, plain);
  kernels.column_affine(x, mask, centre, dy, a, b, c, both);
  return {mean, variance, count, sum_dy, sum_dy_d, plain, both};
}

}  // namespace

TEST_CASE("CUDA: column norms agree with the CPU") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes)
    for (const Extent& e : extents)
      for (const bool masked : {false, true})
        for (const bool centred : {true, false}) {
          INFO(dtype_name(dtype) << " " << e.outer << " x " << e.channels << " x " << e.inner
                                 << (masked ? ", masked" : "") << (centred ? "" : ", not centred"));
          const TensorList expected = run(e, dtype, masked, centred, norma::cpu);
          const TensorList actual = run(e, dtype, masked, centred, cuda(0));
          for (std::size_t i = 0; i < expected.size(); ++i) {
            INFO("result " << i);
            // Statistics are not rounded to the dtype; sums of products of size 100 cancel.
            Tolerance tolerance =
                i < 5 ? tolerance_of(dtype == float64 ? float64 : float32) : tolerance_of(dtype);
            if (i == 1 || i == 4) tolerance.atol *= centred ? 20.0 : 1000.0;
            CHECK(allclose(actual[i], expected[i], tolerance));
          }
        }
}

TEST_CASE("CUDA: column norms repeat bit for bit in every order of threads and blocks") {
  if (!has_device()) return;
  for (const Extent& e : {Extent{300, 33, 1}, Extent{4, 5, 300}}) {
    const TensorList first = run(e, float32, true, true, cuda(0));
    for (const emulator::Schedule& schedule : emulator::all_schedules(1)) {
      const emulator::ScheduleGuard guard(schedule);
      const TensorList again = run(e, float32, true, true, cuda(0));
      for (std::size_t i = 0; i < first.size(); ++i) CHECK(bitwise_equal(again[i], first[i]));
    }
  }
}

TEST_CASE("CUDA: dropout draws the words of the CPU") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t count : {1, 3, 4, 1001}) {
      const Tensor x = converted(random({count}, 1, 0.5, 1.0), dtype);
      const auto run_on = [&](const Device& device, double p) {
        const Tensor on = x.to(device), out = empty_like(on);
        backend(device).dropout(on, p, PhiloxState{123456789012345, 1ull << 33}, out);
        return out;
      };
      for (const double p : {0.0, 0.3, 1.0})
        CHECK(bitwise_equal(run_on(cuda(0), p), run_on(norma::cpu, p)));
    }
}

TEST_CASE("CUDA: the soft cap agrees with the CPU") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes) {
    const Tensor x = converted(random({517}, 1, -60.0, 60.0), dtype);
    const Tensor dy = converted(random({517}, 2), dtype);
    const auto run_on = [&](const Device& device) {
      const Tensor on = x.to(device), out = empty_like(on), dx = empty_like(on);
      backend(device).softcap(on, 20.0, out);
      backend(device).softcap_backward(out, 20.0, dy.to(device), dx);
      return TensorList{out, dx};
    };
    const TensorList actual = run_on(cuda(0)), expected = run_on(norma::cpu);
    CHECK(allclose(actual[0], expected[0], tolerance_of(dtype)));
    // A 16-bit y near the cap has few digits of 1 - (y / cap)^2, the same on both devices or one
    // rounding apart.
    Tolerance tolerance = tolerance_of(dtype);
    tolerance.atol *= 2.0;
    CHECK(allclose(actual[1], expected[1], tolerance));
  }
}

}  // namespace norma::test
