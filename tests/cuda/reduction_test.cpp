// The CUDA kernels of reductions against the CPU's, in every dtype that those take.
#include "cuda/kernel_cases.h"

namespace norma::test {
namespace {

struct Extent {
  std::int64_t outer, reduced, inner;
};
/// Every number of threads that can share an output, reductions of nothing, tails, and some that
/// are cut into parts: runs and columns.
constexpr Extent extents[] = {{1, 1, 1},    {5, 0, 1},    {3, 0, 2},    {0, 4, 1},    {4, 3, 0},
                              {33, 3, 1},   {9, 31, 1},   {3, 32, 1},   {2, 33, 1},   {3, 257, 1},
                              {2, 1024, 1}, {2, 1025, 1}, {1, 9001, 1}, {2, 8192, 1}, {3, 7, 5},
                              {2, 65, 33},  {1, 300, 31}, {2, 257, 2},  {1, 2100, 3}, {40, 2, 40}};

std::string label(const Extent& e, DType dtype) {
  return fmt::format("{} x {} x {} {}", e.outer, e.reduced, e.inner, dtype);
}

Tensor reduced(ReduceOp op, const Tensor& x, const Extent& e, DType dtype, const Device& device) {
  const Tensor out = output({e.outer, e.inner}, dtype, device);
  backend(device).reduce(op, placed(x, device, 1), e.outer, e.reduced, e.inner, out);
  return out;
}

/// Those that a dtype can be reduced to.
std::vector<DType> result_dtypes(ReduceOp op, DType dtype) {
  if (op == ReduceOp::any || op == ReduceOp::all) return {bool_};
  const DType accumulate = !is_floating_point(dtype) ? int64 : accumulate_of(dtype);
  return dtype == accumulate ? std::vector<DType>{dtype} : std::vector<DType>{dtype, accumulate};
}

Tensor arg_of(bool largest, const Tensor& x, const Extent& e, const Device& device) {
  const Tensor out = output({e.outer, e.inner}, int64, device);
  backend(device).argreduce(largest, placed(x, device, 1), e.outer, e.reduced, e.inner, out);
  return out;
}

Tensor cumsum_of(const Tensor& x, const Extent& e, bool reverse, const Device& device) {
  const Tensor out = output(x.shape(), x.is_floating_point() ? x.dtype() : int64, device);
  backend(device).cumsum(placed(x, device, 1), e.outer, e.reduced, e.inner, reverse, out);
  return out;
}

/// Uniform in [-1, 1], or whole, or true and false; in products near 1.
Tensor terms(ReduceOp op, const Extent& e, DType dtype) {
  const Shape shape{e.outer, e.reduced, e.inner};
  if (!is_floating_point(dtype)) return numbers(shape, dtype, 1);
  return op == ReduceOp::prod ? values(shape, dtype, 1, 0.97, 1.03) : values(shape, dtype, 1);
}

}  // namespace

TEST_CASE("CUDA: reductions agree with the CPU in every dtype and shape") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::amax, ReduceOp::amin,
                            ReduceOp::any, ReduceOp::all})
    for (const DType dtype : all_dtypes)
      for (const DType result : result_dtypes(op, dtype))
        for (const Extent& e : extents) {
          INFO("operation " << static_cast<int>(op) << " " << label(e, dtype) << " to "
                            << dtype_name(result));
          const Tensor x = terms(op, e, dtype);
          // Everything but sums and products of fractions is exact.
          const bool rounds =
              is_floating_point(dtype) && (op == ReduceOp::sum || op == ReduceOp::prod);
          const Tensor actual = reduced(op, x, e, result, cuda(0)),
                       expected = reduced(op, x, e, result, cpu);
          CHECK(allclose(actual, expected, rounds ? tolerance_of(result, e.reduced) : Tolerance{}));
        }
}

TEST_CASE("CUDA: extrema of NaN and infinities are those of the CPU") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : floating_dtypes)
    for (const Extent& e : {Extent{5, 40, 1}, Extent{5, 9001, 1}, Extent{5, 300, 1}}) {
      const Tensor x = values({e.outer, e.reduced}, dtype, 1);
      x.narrow(0, 0, 1).fill_(-inf);
      x.narrow(0, 1, 1).fill_(inf);
      x.narrow(0, 2, 1).narrow(1, 37, 1).fill_(nan);
      x.narrow(0, 2, 1).narrow(1, 5, 1).fill_(nan);
      x.narrow(0, 3, 1).narrow(1, 11, 2).fill_(2.0);
      x.narrow(0, 3, 1).narrow(1, 21, 2).fill_(-inf);
      INFO(label(e, dtype));
      for (const ReduceOp op : {ReduceOp::amax, ReduceOp::amin})
        CHECK(allclose(reduced(op, x, e, dtype, cuda(0)), reduced(op, x, e, dtype, cpu), {}));
      for (const bool largest : {true, false})
        CHECK(bitwise_equal(arg_of(largest, x, e, cuda(0)), arg_of(largest, x, e, cpu)));
    }
}

TEST_CASE("CUDA: argmax and argmin agree with the CPU in every dtype and shape") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const DType dtype : all_dtypes)
    for (const Extent& e : extents) {
      if (e.reduced == 0) continue;
      INFO(label(e, dtype));
      // Few values, so that many are equal: the first index counts.
      const Tensor x = (numbers({e.outer, e.reduced, e.inner}, int64, 1)).to(dtype);
      for (const bool largest : {true, false})
        CHECK(bitwise_equal(arg_of(largest, x, e, cuda(0)), arg_of(largest, x, e, cpu)));
    }
}

TEST_CASE("CUDA: cumulative sums agree with the CPU in every dtype and shape") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const DType dtype : all_dtypes)
    for (const Extent& e : extents)
      for (const bool reverse : {false, true}) {
        INFO(label(e, dtype) << (reverse ? ", reverse" : ""));
        const Tensor x = terms(ReduceOp::sum, e, dtype);
        CHECK(allclose(cumsum_of(x, e, reverse, cuda(0)), cumsum_of(x, e, reverse, cpu),
                       is_floating_point(dtype) ? tolerance_of(dtype, e.reduced) : Tolerance{}));
      }
}

TEST_CASE("CUDA: one infinity or NaN anywhere is found") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t count : {1, 33, 1025, 9001}) {
      const Tensor x = ones({count}, {.dtype = dtype, .device = cuda(0)});
      CHECK(backend(x).all_finite(x));
      for (const std::int64_t at : {std::int64_t{0}, count / 2, count - 1})
        for (const double bad :
             {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
              std::numeric_limits<double>::quiet_NaN()}) {
          x.narrow(0, at, 1).fill_(bad);
          CHECK_FALSE(backend(x).all_finite(x));
          x.narrow(0, at, 1).fill_(1.0);
        }
    }
  CHECK(backend(cuda(0)).all_finite(zeros({0}, {.device = cuda(0)})));
  CHECK(backend(cuda(0)).all_finite(zeros({3}, {.dtype = int64, .device = cuda(0)})));
}

TEST_CASE("CUDA: reductions repeat bit for bit in every order of threads and blocks") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const Extent& e : {Extent{33, 3, 1}, Extent{3, 257, 1}, Extent{1, 9001, 1},
                          Extent{2, 65, 33}, Extent{1, 2100, 3}}) {
    INFO(label(e, float32));
    const Tensor x = values({e.outer, e.reduced, e.inner}, float32, 1);
    check_repeats([&](const Device& device) {
      return TensorList{reduced(ReduceOp::sum, x, e, float32, device),
                        reduced(ReduceOp::amax, x, e, float32, device), arg_of(true, x, e, device),
                        cumsum_of(x, e, false, device)};
    });
  }
}

}  // namespace norma::test
