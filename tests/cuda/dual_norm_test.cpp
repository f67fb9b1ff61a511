// The dual norm's CUDA kernels against the CPU's.
#include "cuda/kernel_cases.h"

namespace norma::test {
namespace {

struct Case {
  std::int64_t rows = 0, width = 0;
  bool centred = true;
  EpsRule eps_rule = EpsRule::inside;
  double weight_offset = 0.0;
  bool weight1 = true, bias1 = true, weight2 = true, bias2 = true;
  bool dx = true, sums = true;
  std::int64_t offset = 0;  ///< elements by which tensors lie off their alignment
};

/// out1, out2, mean, rstd, dx, dweight1, dbias1, dweight2, dbias2.
TensorList run(const Case& c, DType dtype, const Device& device) {
  const auto input = [&](bool wanted, const Shape& shape, std::uint64_t seed, double low = -1.0,
                         double high = 1.0) {
    return wanted ? placed(values(shape, dtype, seed, low, high), device, c.offset) : Tensor();
  };
  const auto result = [&](bool wanted, const Shape& shape) {
    return wanted ? placed(output(shape, dtype, cpu), device, c.offset) : Tensor();
  };
  const Shape rows{c.rows, c.width}, columns{c.width};
  const RowNormParams p{.centred = c.centred,
                        .statistic_width = c.width,
                        .divisor = static_cast<double>(c.width),
                        .eps_rule = c.eps_rule,
                        .eps = 0.1,
                        .weight_offset = c.weight_offset};
  const Tensor x = input(true, rows, 1), weight1 = input(c.weight1, columns, 2, 0.5, 1.5),
               bias1 = input(c.bias1, columns, 3), weight2 = input(c.weight2, columns, 4, 0.5, 1.5),
               bias2 = input(c.bias2, columns, 5), dy1 = input(true, rows, 6),
               dy2 = input(true, rows, 7);
  const TensorList out = {result(true, rows),
                          result(true, rows),
                          c.centred ? output({c.rows}, accumulate_of(dtype), device) : Tensor(),
                          output({c.rows}, accumulate_of(dtype), device),
                          result(c.dx, rows),
                          result(c.weight1 && c.sums, columns),
                          result(c.bias1 && c.sums, columns),
                          result(c.weight2 && c.sums, columns),
                          result(c.bias2 && c.sums, columns)};
  backend(device).dual_norm(x, weight1, bias1, weight2, bias2, p, out[0], out[1], out[2], out[3]);
  backend(device).dual_norm_backward(x, weight1, weight2, out[2], out[3], dy1, dy2, p, out[4],
                                     out[5], out[6], out[7], out[8]);
  return out;
}

void check_case(const Case& c, DType dtype) {
  INFO(c.rows << " x " << c.width << " " << dtype_name(dtype) << (c.centred ? "" : ", plain"));
  check_devices([&](const Device& device) { return run(c, dtype, device); }, dtype,
                [&](std::size_t i) { return i < 5 ? c.width : c.rows; });
}

}  // namespace

TEST_CASE("CUDA: the dual norm agrees with the CPU in every dtype and shape") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes)
    for (const auto& [rows, width] : kernel_shapes)
      for (const bool centred : {true, false})
        if (!centred || width < 300 || dtype == float32)
          check_case({.rows = rows, .width = width, .centred = centred}, dtype);
  check_case({.rows = 4099, .width = 9}, float32);
}

TEST_CASE("CUDA: every option of the dual norm") {
  if (!has_device()) return;
  for (const std::int64_t width : {12, 96, 768, 9000}) {
    const Case c{.rows = 5, .width = width};
    const auto check_with = [&](auto change, DType dtype = float32) {
      Case changed = c;
      change(changed);
      check_case(changed, dtype);
    };
    check_with([](Case& k) { k.weight1 = k.bias2 = false; });
    check_with([](Case& k) { k.weight1 = k.bias1 = k.weight2 = k.bias2 = false; });
    check_with([](Case& k) { k.weight_offset = 1.0, k.weight2 = false; });
    check_with([](Case& k) { k.eps_rule = EpsRule::outside; });
    check_with([](Case& k) { k.dx = false; });
    check_with([](Case& k) { k.sums = false; });
    for (const DType dtype : {float32, bfloat16}) check_with([](Case& k) { k.offset = 1; }, dtype);
  }
}

TEST_CASE("CUDA: the dual norm without rows writes zeros for the gradients of its parameters") {
  if (!has_device()) return;
  for (const DType dtype : floating_dtypes) check_case({.rows = 0, .width = 4}, dtype);
}

TEST_CASE("CUDA: the dual norm repeats bit for bit in every order of threads and blocks") {
  if (!has_device()) return;
  for (const KernelShape& size :
       {KernelShape{70, 3}, KernelShape{70, 64}, KernelShape{5, 768}, KernelShape{3, 9000}})
    check_repeats([&](const Device& device) {
      return run({.rows = size.rows, .width = size.width}, float32, device);
    });
}

}  // namespace norma::test
