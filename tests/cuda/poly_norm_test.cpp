// PolyNorm's CUDA kernels against the CPU's.
#include "cuda/kernel_cases.h"

namespace norma::test {
namespace {

struct Case {
  std::int64_t rows = 0, width = 0;
  bool bias = true, dx = true, sums = true;
  std::int64_t offset = 0;  ///< elements by which x lies off its alignment
};

/// out, rstd, dx, dweight, dbias.
TensorList run(const Case& c, DType dtype, const Device& device) {
  const Shape rows{c.rows, c.width};
  const auto input = [&](const Shape& shape, std::uint64_t seed) {
    return placed(values(shape, dtype, seed), device, c.offset);
  };
  const auto result = [&](bool wanted, const Shape& shape) {
    return wanted ? placed(output(shape, dtype, cpu), device, c.offset) : Tensor();
  };
  const Tensor x = input(rows, 1), weight = input({3}, 2), bias = c.bias ? input({1}, 3) : Tensor(),
               dy = input(rows, 4);
  const TensorList out = {result(true, rows), output({c.rows, 3}, accumulate_of(dtype), device),
                          result(c.dx, rows), result(c.sums, {3}), result(c.bias && c.sums, {1})};
  backend(device).poly_norm(x, weight, bias, 0.01, out[0], out[1]);
  backend(device).poly_norm_backward(x, weight, out[1], dy, out[2], out[3], out[4]);
  return out;
}

void check_case(const Case& c, DType dtype) {
  INFO(c.rows << " x " << c.width << " " << dtype_name(dtype));
  check_devices([&](const Device& device) { return run(c, dtype, device); }, dtype,
                [&](std::size_t i) { return i < 3 ? c.width : 16 * c.rows * c.width; });
}

}  // namespace

TEST_CASE("CUDA: PolyNorm agrees with the CPU in every dtype and shape") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes)
    for (const auto& [rows, width] : kernel_shapes)
      check_case({.rows = rows, .width = width}, dtype);
  check_case({.rows = 65537, .width = 3}, float32);
}

TEST_CASE("CUDA: every option of PolyNorm") {
  if (!has_device()) return;
  for (const std::int64_t width : {12, 96, 768}) {
    check_case({.rows = 5, .width = width, .bias = false}, float32);
    check_case({.rows = 5, .width = width, .dx = false}, float32);
    check_case({.rows = 5, .width = width, .sums = false}, float32);
    for (const DType dtype : {float32, bfloat16})
      check_case({.rows = 5, .width = width, .offset = 1}, dtype);
  }
}

TEST_CASE("CUDA: PolyNorm without rows writes zeros for the gradients of its parameters") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes) check_case({.rows = 0, .width = 4}, dtype);
}

TEST_CASE("CUDA: PolyNorm repeats bit for bit in every order of threads and blocks") {
  if (!has_device()) return;
  for (const KernelShape& size :
       {KernelShape{70, 3}, KernelShape{70, 64}, KernelShape{5, 768}, KernelShape{3, 20000}})
    check_repeats([&](const Device& device) {
      return run({.rows = size.rows, .width = size.width}, float32, device);
    });
}

}  // namespace norma::test
