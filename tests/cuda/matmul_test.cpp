// Matrix products and the linear layer on the device against the CPU's.
#include "cuda/kernel_cases.h"

namespace norma::test {

namespace {

struct Sizes {
  std::int64_t m, n, k;
};

// Around the edges of a tile (64) and of a slice (16).
constexpr Sizes all_sizes[] = {{1, 1, 1},    {2, 3, 0},    {15, 63, 17},
                               {16, 64, 16}, {65, 17, 33}, {130, 70, 15}};

/// [batch, rows, columns], or a view of its transpose: laid out the other way.
Tensor factor(std::int64_t batch, std::int64_t rows, std::int64_t columns, bool transposed,
              DType dtype, const Device& device, int seed) {
  const Shape shape = transposed ? Shape{batch, columns, rows} : Shape{batch, rows, columns};
  return placed(values(shape, dtype, seed), device, 1);
}

}  // namespace

TEST_CASE("CUDA: matrix products agree with the CPU in every dtype and shape") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const DType dtype : floating_dtypes)
    for (const auto& [m, n, k] : all_sizes)
      for (const int form : {0, 1, 2, 3}) {
        const bool transpose_a = form % 2 == 1, transpose_b = form / 2 == 1;
        const double beta = form == 3 ? 0.5 : 0.0;
        INFO(dtype_name(dtype) << " " << m << " x " << n << " x " << k << ", form " << form);
        check_devices(
            [&](const Device& device) {
              const Tensor a = factor(3, m, k, transpose_a, dtype, device, 1);
              // One matrix for the whole batch, or one each.
              const Tensor b = factor(form == 1 ? 1 : 3, k, n, transpose_b, dtype, device, 2);
              const Tensor c = placed(values({3, m, n}, dtype, 3), device);
              backend(device).gemm(transpose_a, transpose_b, 2.0, a, b, beta, c);
              return TensorList{c};
            },
            dtype, [&](std::size_t) { return k + 2; });
      }
}

TEST_CASE("CUDA: products of integers wrap around as on the CPU") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const DType dtype : {int32, int64}) {
    const auto product = [&](const Device& device) {
      const double large = dtype == int32 ? 2e9 : 9e18;
      const Tensor a = full({1, 17, 19}, large, {.dtype = dtype}).to(device);
      const Tensor b = arange(19.0 * 5.0, {.dtype = dtype}).view({1, 19, 5}).to(device);
      const Tensor c = ones({1, 17, 5}, {.dtype = dtype, .device = device});
      backend(device).gemm(false, false, 3.0, a, b, 2.0, c);
      return c.to(cpu);
    };
    CHECK(bitwise_equal(product(cuda(0)), product(cpu)));
  }
}

TEST_CASE("CUDA: the linear layer agrees with the CPU, forward and backward") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const DType dtype : floating_dtypes)
    for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu,
                                        Activation::gelu_tanh, Activation::silu}) {
      INFO(dtype_name(dtype) << ", activation " << static_cast<int>(activation));
      check_devices(
          [&](const Device& device) {
            const bool active = activation != Activation::none;
            const Tensor x = placed(values({33, 19}, dtype, 1), device);
            const Tensor weight = placed(values({70, 19}, dtype, 2), device);
            const Tensor bias = placed(values({70}, dtype, 3), device);
            const Tensor pre = active ? output({33, 70}, dtype, device) : Tensor();
            const Tensor out = output({33, 70}, dtype, device);
            backend(device).linear(x, weight, bias, activation, pre, out);
            const Tensor dy = placed(values({33, 70}, dtype, 4), device);
            const Tensor dx = output({33, 19}, dtype, device);
            const Tensor dweight = output({70, 19}, dtype, device);
            const Tensor dbias = output({70}, dtype, device);
            backend(device).linear_backward(x, weight, pre, activation, dy, dx, dweight, dbias);
            return TensorList{out, dx, dweight, dbias};
          },
          dtype, [](std::size_t i) { return i == 1 ? 70 : 35; });
    }
}

TEST_CASE("CUDA: matrix products repeat bit for bit in every order of threads and blocks") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  check_repeats([&](const Device& device) {
    const Tensor a = placed(values({2, 70, 33}, float32, 1), device);
    const Tensor b = placed(values({2, 33, 66}, float32, 2), device);
    const Tensor c = output({2, 70, 66}, float32, device);
    backend(device).gemm(false, false, 1.0, a, b, 0.0, c);
    return TensorList{c};
  });
}

}  // namespace norma::test
