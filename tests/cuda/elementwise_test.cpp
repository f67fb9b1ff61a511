// The CUDA kernels of element-wise operations against the CPU's, in every dtype that those take.
#include "cuda/kernel_cases.h"
#include "norma/cuda/kernels/elementwise_binary.h"
#include "norma/cuda/kernels/elementwise_unary.h"
#include "norma/ops/formulas/binary.h"
#include "norma/ops/formulas/unary.h"

namespace norma::test {
namespace {

/// No elements, warps and blocks that are not full, several blocks.
constexpr std::int64_t counts[] = {0, 1, 31, 32, 33, 257, 1000};

template <class Op>
std::vector<Op> ops_up_to(Op last) {
  std::vector<Op> ops;
  for (int i = 0; i <= static_cast<int>(last); ++i) ops.push_back(static_cast<Op>(i));
  return ops;
}
const std::vector<UnaryOp> unary_ops = ops_up_to(UnaryOp::isfinite);
const std::vector<BinaryOp> binary_ops = ops_up_to(BinaryOp::logical_or);

/// What `dtype` gives for results that integers and logical operations have exactly.
template <class Run>
void check_elements(const Run& run, DType dtype) {
  check_devices(run, dtype, [](std::size_t) { return 1; });
}

Tensor unary_of(UnaryOp op, const Tensor& x, const Device& device) {
  const Tensor on = placed(x, device, 1);
  const Tensor out = output(x.shape(), is_predicate(op) ? bool_ : x.dtype(), device);
  backend(device).unary(op, on, out);
  return out;
}

/// Operands of one shape: contiguous, transposed, a row, a column, one number, every second.
struct Operand {
  const char* name;
  Tensor (*make)(DType dtype, std::uint64_t seed, const Device& device);
};
constexpr std::int64_t rows = 7, columns = 33;
Tensor whole(DType dtype, std::uint64_t seed, const Device& device) {
  return placed(numbers({rows, columns}, dtype, seed), device, 1);
}
const Operand operands[] = {
    {"contiguous", whole},
    {"transposed",
     [](DType dtype, std::uint64_t seed, const Device& device) {
       return numbers({columns, rows}, dtype, seed).to(device).transpose(0, 1);
     }},
    {"a row",
     [](DType dtype, std::uint64_t seed, const Device& device) {
       return numbers({columns}, dtype, seed).to(device).expand({rows, columns});
     }},
    {"a column",
     [](DType dtype, std::uint64_t seed, const Device& device) {
       return numbers({rows, 1}, dtype, seed).to(device).expand({rows, columns});
     }},
    {"one number",
     [](DType dtype, std::uint64_t seed, const Device& device) {
       return numbers({}, dtype, seed).to(device).expand({rows, columns});
     }},
    {"with gaps",
     [](DType dtype, std::uint64_t seed, const Device& device) {
       return noncontiguous(numbers({rows, columns}, dtype, seed).to(device));
     }},
};

Tensor binary_of(BinaryOp op, const Tensor& a, const Tensor& b) {
  const Tensor out = output(a.shape(), is_logical(op) ? bool_ : a.dtype(), a.device());
  backend(a).binary(op, a, b, out);
  return out;
}

Tensor whole_values(const std::vector<std::int64_t>& values) {
  return from_values(values, {static_cast<std::int64_t>(values.size())});
}

bool exists(BinaryOp op, DType dtype) { return op != BinaryOp::div || is_floating_point(dtype); }

}  // namespace

TEST_CASE("CUDA: unary operations agree with the CPU in every dtype") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const UnaryOp op : unary_ops)
    for (const DType dtype : all_dtypes) {
      if (!is_floating_point(dtype) && !takes_integers(op)) continue;
      for (const std::int64_t count : counts) {
        INFO("operation " << static_cast<int>(op) << " " << dtype_name(dtype) << " " << count);
        const Tensor x = numbers({count}, dtype, 1);
        check_elements([&](const Device& device) { return TensorList{unary_of(op, x, device)}; },
                       dtype);
      }
    }
}

TEST_CASE("CUDA: the gradients of unary operations agree with the CPU") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const UnaryOp op : unary_ops) {
    if (!is_differentiable(op)) continue;
    for (const DType dtype : floating_dtypes)
      for (const std::int64_t count : counts) {
        INFO("operation " << static_cast<int>(op) << " " << dtype_name(dtype) << " " << count);
        const Tensor x = numbers({count}, dtype, 1), dy = values({count}, dtype, 2);
        const Tensor y = unary_of(op, x, cpu);
        check_elements(
            [&](const Device& device) {
              const Tensor dx = output({count}, dtype, device);
              backend(device).unary_backward(op, placed(x, device), placed(y, device, 1),
                                             placed(dy, device), dx);
              return TensorList{dx};
            },
            dtype);
      }
  }
}

TEST_CASE("CUDA: an operation without a gradient kernel says so") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  const Tensor x = ones({3}, {.device = cuda(0)});
  CHECK_THROWS_AS(backend(x).unary_backward(UnaryOp::sign, x, x, x, empty_like(x)),
                  NotImplementedError);
  const Tensor whole_numbers = x.to(int64);
  CHECK_THROWS_AS(backend(x).unary(UnaryOp::exp, whole_numbers, empty_like(x)), DTypeError);
}

TEST_CASE("CUDA: binary operations agree with the CPU in every dtype and layout") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const BinaryOp op : binary_ops)
    for (const DType dtype : all_dtypes) {
      if (!exists(op, dtype)) continue;
      for (const Operand& a : operands)
        for (const Operand& b : operands) {
          INFO("operation " << static_cast<int>(op) << " " << dtype_name(dtype) << ": " << a.name
                            << ", " << b.name);
          check_elements(
              [&](const Device& device) {
                return TensorList{
                    binary_of(op, a.make(dtype, 1, device), b.make(dtype, 2, device))};
              },
              dtype);
        }
      for (const std::int64_t count : counts) {
        INFO("operation " << static_cast<int>(op) << " " << dtype_name(dtype) << " " << count);
        check_elements(
            [&](const Device& device) {
              return TensorList{binary_of(op, placed(numbers({count}, dtype, 1), device),
                                          placed(numbers({count}, dtype, 2), device))};
            },
            dtype);
      }
    }
}

TEST_CASE("CUDA: operations with a number agree with the CPU in every dtype") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const BinaryOp op : binary_ops)
    for (const DType dtype : all_dtypes) {
      if (!exists(op, dtype)) continue;
      for (const double scalar : {0.0, 2.0, 3.0, 1.0, -2.0, -1.0, 0.5, -0.5, 0.1})
        for (const bool reversed : {false, true}) {
          const double number = is_floating_point(dtype) ? scalar : std::nearbyint(scalar);
          // The CPU takes the root of a 16-bit number as a power: not NaN of -infinity.
          const bool root = op == BinaryOp::pow && std::abs(scalar) == 0.5 && dtype != float32;
          INFO("operation " << static_cast<int>(op) << " " << dtype_name(dtype) << " " << number
                            << (reversed ? " reversed" : ""));
          const Tensor x =
              root && !reversed ? values({101}, dtype, 1, 0.1, 4.0) : numbers({101}, dtype, 1);
          check_elements(
              [&](const Device& device) {
                const bool logical = is_logical(op);
                const Tensor out = output({101}, logical ? bool_ : dtype, device);
                backend(device).binary_scalar(op, placed(x, device, 1), number, reversed, out);
                return TensorList{out};
              },
              dtype);
        }
    }
}

TEST_CASE("CUDA: whole numbers wrap as on the CPU") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const Tensor x = whole_values({least, least + 1, -1, 0, 1, 3037000500, least + 5});
  const Tensor y = whole_values({-1, 2, least, -1, -3, 3037000500, 63});
  for (const UnaryOp op : {UnaryOp::neg, UnaryOp::abs, UnaryOp::square, UnaryOp::sign})
    CHECK(bitwise_equal(unary_of(op, x, cuda(0)), unary_of(op, x, cpu)));
  for (const BinaryOp op : {BinaryOp::add, BinaryOp::sub, BinaryOp::mul, BinaryOp::pow,
                            BinaryOp::maximum, BinaryOp::lt})
    CHECK(bitwise_equal(binary_of(op, x.to(cuda(0)), y.to(cuda(0))), binary_of(op, x, y)));
}

TEST_CASE("CUDA: clamp agrees with the CPU in every dtype") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  constexpr double inf = std::numeric_limits<double>::infinity();
  struct Bounds {
    double low, high;
  };
  for (const DType dtype : all_dtypes)
    for (const Bounds& bounds :
         {Bounds{-1.5, 2.25}, Bounds{-inf, 1.0}, Bounds{0.0, inf}, Bounds{2.0, -1.0}})
      for (const std::int64_t count : counts) {
        INFO(dtype_name(dtype) << " " << count << " in " << bounds.low << ", " << bounds.high);
        const Tensor x = numbers({count}, dtype, 1);
        const auto run = [&](const Device& device) {
          const Tensor out = output({count}, dtype, device);
          backend(device).clamp(placed(x, device, 1), bounds.low, bounds.high, out);
          return out;
        };
        CHECK(allclose(run(cuda(0)), run(cpu), {}));
      }
}

TEST_CASE("CUDA: where agrees with the CPU in every dtype and layout") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const DType dtype : all_dtypes)
    for (const Operand& condition : operands)
      for (const Operand& a : operands)
        for (const Operand& b : operands) {
          INFO(dtype_name(dtype) << ": " << condition.name << ", " << a.name << ", " << b.name);
          const auto run = [&](const Device& device) {
            const Tensor out = output({rows, columns}, dtype, device);
            backend(device).where(condition.make(bool_, 3, device), a.make(dtype, 1, device),
                                  b.make(dtype, 2, device), out);
            return out;
          };
          CHECK(bitwise_equal(run(cuda(0)), run(cpu)));
        }
}

TEST_CASE("CUDA: out += alpha x agrees with the CPU in every dtype") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const DType dtype : all_dtypes)
    for (const std::int64_t count : counts) {
      INFO(dtype_name(dtype) << " " << count);
      check_elements(
          [&](const Device& device) {
            const Tensor out = placed(numbers({count}, dtype, 1), device, 1);
            backend(device).add_scaled(out, placed(numbers({count}, dtype, 2), device), -3.0);
            return TensorList{out};
          },
          dtype);
    }
}

TEST_CASE("CUDA: SwiGLU and its gradients agree with the CPU") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t count : counts)
      for (const bool only_up : {false, true}) {
        INFO(dtype_name(dtype) << " " << count);
        check_elements(
            [&](const Device& device) {
              const Tensor gate = placed(numbers({count}, dtype, 1), device, 1),
                           up = placed(values({count}, dtype, 2), device),
                           dy = placed(values({count}, dtype, 3), device);
              const Tensor out = output({count}, dtype, device),
                           dup = output({count}, dtype, device),
                           dgate = only_up ? Tensor() : output({count}, dtype, device);
              backend(device).swiglu(gate, up, out);
              backend(device).swiglu_backward(gate, up, dy, dgate, dup);
              return only_up ? TensorList{out, dup} : TensorList{out, dup, dgate};
            },
            dtype);
      }
}

}  // namespace norma::test
