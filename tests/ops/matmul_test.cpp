// What the generic suites do not see of matrix products: exact values, which views stay uncopied,
// integers, threads.
#include "norma/ops/matmul.h"

#include "norma/core/allocator.h"
#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/ops/cpu/gemm.h"
#include "norma/ops/threads.h"
#include "support/catch.h"
#include "support/compare.h"

#include <limits>

namespace norma::test {

TEST_CASE("matmul gives PyTorch's shapes") {
  const auto shape = [](const Shape& a, const Shape& b) {
    return matmul(zeros(a), zeros(b)).shape();
  };
  CHECK(shape({3}, {3}) == Shape{});
  CHECK(shape({2, 3}, {3}) == Shape{2});
  CHECK(shape({3}, {3, 4}) == Shape{4});
  CHECK(shape({5, 2, 3}, {3}) == Shape{5, 2});
  CHECK(shape({3}, {5, 3, 4}) == Shape{5, 4});
  CHECK(shape({7, 1, 2, 3}, {5, 3, 4}) == Shape{7, 5, 2, 4});
  CHECK(shape({0, 3}, {3, 4}) == Shape{0, 4});
}

TEST_CASE("matmul of small integers is exact in every dtype") {
  for (const DType dtype : {float32, float64, float16, bfloat16, int32, int64}) {
    INFO(dtype_name(dtype));
    const Tensor a = tensor({{1, 2, 3}, {4, 5, 6}}, {.dtype = dtype});
    const Tensor b = tensor({{1, -1}, {0, 2}, {2, 1}}, {.dtype = dtype});
    const Tensor c = matmul(a, b);
    CHECK(c.dtype() == dtype);
    CHECK(c.to_vector<double>() == std::vector<double>{7, 6, 16, 12});
    CHECK(matmul(b.t(), a.t()).to_vector<double>() == std::vector<double>{7, 16, 6, 12});
  }
}

TEST_CASE("an empty sum is zero, whatever the memory held") {
  for (const DType dtype : {float32, float64, int64}) {
    INFO(dtype_name(dtype));
    {
      const Tensor garbage = full({3, 2}, 7.0, {.dtype = dtype});  // goes back to the allocator
    }
    const Tensor c = matmul(zeros({3, 0}, {.dtype = dtype}), zeros({0, 2}, {.dtype = dtype}));
    CHECK(c.to_vector<double>() == std::vector<double>(6, 0.0));
  }
}

TEST_CASE("16-bit products sum in float32") {
  // 4096 ones: a bfloat16 sum would stop at 256.
  const Tensor ones_row = ones({1, 4096}, {.dtype = bfloat16});
  CHECK(matmul(ones_row, ones_row.t()).item() == 4096.0);
}

TEST_CASE("transposed, sliced and expanded operands are not copied") {
  const Tensor a = randn({4, 64, 32}), b = randn({4, 64, 32}), w = randn({16, 96});
  const auto allocated = [](const auto& run) {
    const auto before = memory_stats();
    const Tensor out = run();
    const auto after = memory_stats();
    return after.allocations - before.allocations;
  };
  CHECK(allocated([&] { return matmul(a, b.transpose(-2, -1)); }) == 1);
  CHECK(allocated([&] { return matmul(a.transpose(-2, -1), b); }) == 1);
  CHECK(allocated([&] { return matmul(a, w.narrow(1, 32, 32).t()); }) == 1);
  CHECK(allocated([&] {
          return matmul(a.select(0, 1).expand({4, 64, 32}), b.transpose(1, 2));
        }) == 1);
  // [B, S, H, D] seen as [B, H, S, D]: two batch strides, so this one packs.
  const Tensor heads = randn({2, 5, 3, 4}).transpose(1, 2);
  CHECK(allocated([&] { return matmul(heads, heads.transpose(-2, -1)); }) == 3);
}

TEST_CASE("addmm with beta 0 ignores its input, NaN too") {
  const Tensor nan = full({2, 2}, std::numeric_limits<double>::quiet_NaN());
  const Tensor y = addmm(nan, eye(2), tensor({{1.0, 2.0}, {3.0, 4.0}}), {.beta = 0.0});
  CHECK(y.to_vector<double>() == std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("addmm of integers takes whole factors, and refuses others") {
  const Tensor a = tensor({{1, 2}, {3, 4}});
  CHECK(addmm(a, a, a, {.beta = 3.0, .alpha = -2.0}).to_vector<double>() ==
        std::vector<double>{-11, -14, -21, -32});
  CHECK_THROWS_AS(addmm(a, a, a, {.alpha = 0.5}), DTypeError);
  CHECK_THROWS_AS(addmm(a, a, a, {.beta = std::numeric_limits<double>::infinity()}), DTypeError);
}

TEST_CASE("the gradient of a shared matrix sums over the batch") {
  const Tensor x = random({3, 2, 4}, 1), w = random({4, 5}, 2), g = random({3, 2, 5}, 3);
  w.requires_grad_();
  matmul(x, w).backward(g);
  Tensor expected = zeros({4, 5}, {.dtype = float64});
  for (std::int64_t i = 0; i < 3; ++i) expected.add_(matmul(x[i].t(), g[i]));
  CHECK(allclose(w.grad(), expected, {1e-12, 1e-13}));
}

TEST_CASE("gemm writes inside its rows only") {
  // A [2, 2] product into a matrix whose rows lie 4 apart, from operands with gaps.
  const std::vector<float> a{1, 2, 0, 3, 4, 0}, b{5, 6, 0, 0, 7, 8, 0, 0};
  std::vector<float> c(8, -1.0F);
  cpu_kernels::gemm(2, 2, 2, 1.0F, {a.data(), 3}, {b.data(), 4}, 0.0F, c.data(), 4);
  CHECK(c == std::vector<float>{19, 22, -1, -1, 43, 50, -1, -1});
  cpu_kernels::gemm(2, 2, 2, 2.0F, {a.data(), 3, true}, {b.data(), 4, true}, 1.0F, c.data(), 4);
  CHECK(c == std::vector<float>{65, 84, -1, -1, 111, 142, -1, -1});
}

TEST_CASE("rows a multiple of 4 KiB apart are multiplied in blocks") {
  // Past one block in both directions, and rows of b transposed or not.
  const Tensor a = random({600, 2048}, 1).to(float32), b = random({600, 3}, 2).to(float32);
  const Tensor rows = a.narrow(1, 5, 1100);
  const Tensor expected = matmul(rows.to(float64).t(), b.to(float64));
  CHECK(allclose(matmul(rows.t(), b), expected, {1e-5, 1e-4}));
  CHECK(allclose(matmul(rows.t(), b.t().contiguous().t()), expected, {1e-5, 1e-4}));
  const Tensor start = random({1100, 3}, 3).to(float32);
  CHECK(allclose(
      addmm(start, rows.t(), b, {.beta = 0.5, .alpha = 2.0}),
      addmm(start.to(float64), rows.to(float64).t(), b.to(float64), {.beta = 0.5, .alpha = 2.0}),
      {1e-5, 1e-4}));
}

TEST_CASE("the number of threads can be set") {
  const int before = get_num_threads();
  set_num_threads(2);
  CHECK(get_num_threads() == 2);
  set_num_threads(before);
  CHECK(get_num_threads() == before);
  CHECK_THROWS_AS(set_num_threads(0), ValueError);
}

}  // namespace norma::test
