// The element-wise norms' CUDA kernels against the CPU's.
#include "cuda/kernel_cases.h"

namespace norma::test {
namespace {

struct Case {
  Squash curve = Squash::tanh;
  std::int64_t rows = 0, width = 0;
  std::int64_t columns = 0;  ///< of the weight; 0: the width
  bool scalars = true;       ///< alpha and shift
  bool affine = true;        ///< weight and bias
  bool dx = true, sums = true;
  std::int64_t offset = 0;  ///< elements by which tensors lie off their alignment
};

/// out, dx, dalpha, dshift, dweight, dbias.
TensorList run(const Case& c, DType dtype, const Device& device) {
  const std::int64_t columns = c.columns == 0 ? c.width : c.columns;
  const auto input = [&](bool wanted, const Shape& shape, std::uint64_t seed, double low = -1.0) {
    return wanted ? placed(values(shape, dtype, seed, low), device, c.offset) : Tensor();
  };
  const auto result = [&](bool wanted, const Shape& shape) {
    return wanted ? placed(output(shape, dtype, cpu), device, c.offset) : Tensor();
  };
  const Shape rows{c.rows, c.width};
  const Tensor x = input(true, rows, 1), dy = input(true, rows, 2),
               alpha = input(c.scalars, {1}, 3, 0.5), shift = input(c.scalars, {1}, 4),
               weight = input(c.affine, {columns}, 5), bias = input(c.affine, {columns}, 6);
  const TensorList out = {result(true, rows),
                          result(c.dx, rows),
                          result(c.scalars && c.sums, {1}),
                          result(c.scalars && c.sums, {1}),
                          result(c.affine && c.sums, {columns}),
                          result(c.affine && c.sums, {columns})};
  backend(device).squash(c.curve, x, alpha, shift, weight, bias, out[0]);
  backend(device).squash_backward(c.curve, x, alpha, shift, weight, dy, out[1], out[2], out[3],
                                  out[4], out[5]);
  return out;
}

void check_case(const Case& c, DType dtype) {
  INFO("curve " << static_cast<int>(c.curve) << " " << c.rows << " x " << c.width << " "
                << dtype_name(dtype));
  const std::int64_t columns = c.columns == 0 ? c.width : c.columns;
  check_devices([&](const Device& device) { return run(c, dtype, device); }, dtype,
                [&](std::size_t i) {
                  if (i < 2) return std::int64_t{1};
                  return i < 4 ? c.rows * c.width
                               : c.rows * c.width / std::max<std::int64_t>(1, columns);
                });
}

constexpr Squash curves[] = {Squash::identity, Squash::tanh, Squash::erf};

}  // namespace

TEST_CASE("CUDA: DyT, Derf and LayerScale agree with the CPU in every dtype and shape") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes)
    for (const auto& [rows, width] : kernel_shapes)
      for (const Squash curve : curves)
        if (width < (curve == Squash::tanh ? 2000 : 100))
          check_case({.curve = curve, .rows = rows, .width = width}, dtype);
}

TEST_CASE("CUDA: element-wise norms of many rows") {
  if (!has_device()) return;
  check_case({.rows = 65537, .width = 3}, float32);
  check_case({.rows = 2053, .width = 40}, bfloat16);
}

TEST_CASE("CUDA: every option of the element-wise norms") {
  if (!has_device()) return;
  for (const Squash curve : curves)
    for (const std::int64_t width : {12, 96, 1040}) {
      if (width > 12 && curve != Squash::tanh) continue;
      const Case c{.curve = curve, .rows = 33, .width = width};
      for (const std::int64_t columns : {1, 4}) {
        Case heads = c;
        heads.columns = columns;
        check_case(heads, float32);
      }
      Case bare = c;
      bare.affine = false;
      check_case(bare, float32);
      bare.scalars = false;
      check_case(bare, float32);
      Case gradient = c;
      gradient.sums = false;
      check_case(gradient, float32);
      Case sums = c;
      sums.dx = false;
      check_case(sums, float32);
      for (const DType dtype : {float32, bfloat16})
        for (const std::int64_t offset : {1, 2}) {
          Case off = c;
          off.offset = offset;
          check_case(off, dtype);
        }
    }
}

TEST_CASE(
    "CUDA: element-wise norms without rows write zeros for the gradients of their parameters") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes) check_case({.rows = 0, .width = 4}, dtype);
  check_case({.rows = 3, .width = 0, .affine = false}, float32);
}

TEST_CASE("CUDA: element-wise norms repeat bit for bit in every order of threads and blocks") {
  if (!has_device()) return;
  for (const KernelShape& size : {KernelShape{300, 3}, KernelShape{70, 64}, KernelShape{65, 520}})
    check_repeats([&](const Device& device) {
      return run({.rows = size.rows, .width = size.width}, float32, device);
    });
}

}  // namespace norma::test
