// The CUDA kernels of softmax, cross entropy and moments against the CPU's.
#include "cuda/kernel_cases.h"

#include <limits>

namespace norma::test {
namespace {

/// Softmax of x and its gradient.
TensorList softmax_of(const Tensor& x, bool log, const Device& device, std::int64_t offset = 0) {
  const Tensor from = placed(x, device, offset),
               dy = placed(values(x.shape(), x.dtype(), 2), device, offset);
  const Tensor y = placed(output(x.shape(), x.dtype(), cpu), device, offset),
               dx = placed(output(x.shape(), x.dtype(), cpu), device, offset);
  backend(device).softmax(from, log, y);
  // The same y on both devices: a log-softmax of -5 in 16 bits is one rounding away from another.
  const Tensor same =
      placed(converted(random(x.shape(), 3, log ? -5.0 : 0.0, log ? -1.0 : 1.0), x.dtype()), device,
             offset);
  backend(device).softmax_backward(same, dy, log, dx);
  return {y, dx};
}

struct Loss {
  std::int64_t rows = 0, classes = 0;
  bool weight = false;
  double label_smoothing = 0.0;
  std::int64_t offset = 0;
};
/// loss, log-sum-exp and the gradient of the logits; every fifth row is ignored.
TensorList run(const Loss& c, DType dtype, const Device& device) {
  const Tensor logits = placed(values({c.rows, c.classes}, dtype, 1, -4.0, 4.0), device, c.offset);
  const Tensor weight =
      c.weight ? placed(values({c.classes}, dtype, 2, 0.5, 1.5), device, c.offset) : Tensor();
  std::vector<std::int64_t> targets(static_cast<std::size_t>(c.rows));
  for (std::int64_t row = 0; row < c.rows; ++row)
    targets[static_cast<std::size_t>(row)] = row % 5 == 4 ? -100 : 7 * row % c.classes;
  const Tensor target = from_values(targets, {c.rows}).to(device);
  const DType statistic = accumulate_of(dtype);
  const Tensor loss = output({c.rows}, statistic, device),
               lse = output({c.rows}, statistic, device);
  const Tensor dloss = placed(values({c.rows}, statistic, 3), device);
  const Tensor dlogits = placed(output({c.rows, c.classes}, dtype, cpu), device, c.offset);
  backend(device).cross_entropy(logits, target, weight, -100, c.label_smoothing, loss, lse);
  backend(device).cross_entropy_backward(logits, target, weight, -100, c.label_smoothing, lse,
                                         dloss, dlogits);
  return {loss, lse, dlogits};
}
void check_loss(const Loss& c, DType dtype) {
  INFO(c.rows << " x " << c.classes << " " << dtype_name(dtype) << (c.weight ? ", weighted" : "")
              << ", smoothing " << c.label_smoothing);
  check_devices([&](const Device& device) { return run(c, dtype, device); }, dtype,
                [&](std::size_t) { return c.classes; });
}

struct Extent {
  std::int64_t outer, reduced, inner;
};
TensorList moments_of(const Extent& e, DType dtype, const Device& device) {
  const Tensor x = placed(values({e.outer, e.reduced, e.inner}, dtype, 1, 9.0, 11.0), device);
  const Tensor mean = output({e.outer, e.inner}, accumulate_of(dtype), device);
  const Tensor variance = output({e.outer, e.inner}, accumulate_of(dtype), device);
  backend(device).mean_variance(x, e.outer, e.reduced, e.inner, mean, variance);
  return {mean, variance};
}

}  // namespace

TEST_CASE("CUDA: softmax and log-softmax agree with the CPU in every dtype and shape") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes)
    for (const bool log : {false, true}) {
      for (const KernelShape& size : kernel_shapes) {
        INFO((log ? "log " : "") << size.rows << " x " << size.width << " " << dtype_name(dtype));
        const Tensor x = values({size.rows, size.width}, dtype, 1, -8.0, 8.0);
        check_devices([&](const Device& device) { return softmax_of(x, log, device); }, dtype,
                      [&](std::size_t i) { return i == 0 ? 1 : size.width; });
      }
      const Tensor x = values({5, 96}, dtype, 1);
      check_devices([&](const Device& device) { return softmax_of(x, log, device, 1); }, dtype,
                    [](std::size_t) { return 96; });
      CHECK(softmax_of(values({0, 4}, dtype, 1), log, cuda(0))[0].numel() == 0);
    }
}

TEST_CASE("CUDA: softmax of infinities and large numbers is that of the CPU") {
  if (!has_device()) return;
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::int64_t width : {4, 70, 20000})
    for (const bool log : {false, true}) {
      const Tensor x = zeros({6, width});
      x.narrow(0, 0, 1).fill_(-inf);                  // nothing to choose from: NaN
      x.narrow(0, 1, 1).narrow(1, 1, 3).fill_(-inf);  // masked: exactly 0
      x.narrow(0, 2, 1).narrow(1, 2, 1).fill_(inf);
      x.narrow(0, 3, 1).narrow(1, 2, 1).fill_(nan);
      x.narrow(0, 4, 1).fill_(3e38);
      x.narrow(0, 5, 1).narrow(1, 0, 1).fill_(-3e38);
      CHECK(allclose(softmax_of(x, log, cuda(0))[0], softmax_of(x, log, cpu)[0]));
    }
}

TEST_CASE("CUDA: cross entropy agrees with the CPU in every dtype and shape") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes)
    for (const auto& [rows, classes] : kernel_shapes) check_loss({rows, classes}, dtype);
  for (const std::int64_t classes : {2, 96, 768, 9000})
    for (const bool weight : {false, true})
      for (const double smoothing : {0.0, 0.1})
        for (const DType dtype : {float32, bfloat16})
          check_loss({6, classes, weight, smoothing, classes == 96 ? 1 : 0}, dtype);
  CHECK(run({0, 4}, float32, cuda(0))[0].numel() == 0);
}

TEST_CASE("CUDA: mean and variance agree with the CPU") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes)
    for (const Extent& e :
         {Extent{33, 5, 1}, Extent{3, 1025, 1}, Extent{1, 20000, 1}, Extent{2, 300, 3},
          Extent{3, 7, 65}, Extent{1, 1, 40}, Extent{0, 3, 2}, Extent{2, 0, 1}, Extent{2, 0, 3}}) {
      INFO(e.outer << " x " << e.reduced << " x " << e.inner << " " << dtype_name(dtype));
      const DType statistic = accumulate_of(dtype);
      const TensorList expected = moments_of(e, dtype, cpu), actual = moments_of(e, dtype, cuda(0));
      const double rounding = statistic == float64 ? 1e-13 : 1e-5;
      CHECK(allclose(actual[0], expected[0], {rounding, rounding}));
      CHECK(allclose(actual[1], expected[1], {rounding, rounding}));
    }
}

TEST_CASE("CUDA: softmax and its kin repeat bit for bit in every order of threads and blocks") {
  if (!has_device()) return;
  for (const KernelShape& size :
       {KernelShape{70, 3}, KernelShape{5, 96}, KernelShape{3, 768}, KernelShape{2, 9000}}) {
    const Tensor x = values({size.rows, size.width}, float32, 1);
    check_repeats([&](const Device& device) { return softmax_of(x, false, device); });
    check_repeats([&](const Device& device) {
      return run({size.rows, size.width, true, 0.1}, float32, device);
    });
    check_repeats([&](const Device& device) {
      return moments_of({size.rows, size.width, 1}, float32, device);
    });
  }
  check_repeats([](const Device& device) { return moments_of({2, 77, 40}, float32, device); });
}

}  // namespace norma::test
