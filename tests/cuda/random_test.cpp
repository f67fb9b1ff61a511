// The CUDA kernels of random numbers draw the words of the CPU's.
#include "cuda/kernel_cases.h"

namespace norma::test {
namespace {

constexpr std::int64_t counts[] = {0, 1, 2, 3, 31, 64, 257, 1001};
constexpr PhiloxState state{123456789012345, 0xfffffff0};  // the counter grows over 32 bits

template <class Draw>
Tensor drawn(std::int64_t count, DType dtype, const Device& device, const Draw& draw) {
  const Tensor out = placed(output({count}, dtype, cpu), device, 1);
  draw(backend(device), out);
  return out;
}

}  // namespace

TEST_CASE("CUDA: uniform and whole random numbers are those of the CPU") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const DType dtype : all_dtypes)
    for (const std::int64_t count : counts) {
      INFO(dtype_name(dtype) << " " << count);
      const auto whole = [](const Backend& kernels, const Tensor& out) {
        kernels.randint(out, state, out.dtype() == bool_ ? 0 : -40, out.dtype() == bool_ ? 2 : 60);
      };
      CHECK(bitwise_equal(drawn(count, dtype, cuda(0), whole), drawn(count, dtype, cpu, whole)));
      if (!is_floating_point(dtype)) continue;
      const auto unit = [](const Backend& kernels, const Tensor& out) {
        kernels.uniform(out, state, 0.0, 1.0);
      };
      CHECK(bitwise_equal(drawn(count, dtype, cuda(0), unit), drawn(count, dtype, cpu, unit)));
      const auto range = [](const Backend& kernels, const Tensor& out) {
        kernels.uniform(out, state, -3.0, 0.7);
      };
      CHECK(allclose(drawn(count, dtype, cuda(0), range), drawn(count, dtype, cpu, range),
                     tolerance_of(dtype, 1)));
    }
  const auto all = [](const Backend& kernels, const Tensor& out) {
    kernels.randint(out, state, std::numeric_limits<std::int64_t>::min(),
                    std::numeric_limits<std::int64_t>::max());
  };
  CHECK(bitwise_equal(drawn(1001, int64, cuda(0), all), drawn(1001, int64, cpu, all)));
}

TEST_CASE("CUDA: a uniform number never reaches the excluded bound") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const DType dtype : {float16, bfloat16}) {
    const Tensor x = drawn(5000, dtype, cuda(0), [](const Backend& kernels, const Tensor& out) {
      kernels.uniform(out, state, 0.0, 1.0);
    });
    const std::vector<double> numbers = x.to_vector<double>();
    CHECK(*std::max_element(numbers.begin(), numbers.end()) < 1.0);
  }
}

TEST_CASE("CUDA: normal random numbers agree with the CPU") {
  if (!has_device()) return;
  const OwnKernelsGuard own;
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t count : counts) {
      INFO(dtype_name(dtype) << " " << count);
      const auto draw = [](const Backend& kernels, const Tensor& out) {
        kernels.normal(out, state, 0.5, 2.0);
      };
      CHECK(allclose(drawn(count, dtype, cuda(0), draw), drawn(count, dtype, cpu, draw),
                     tolerance_of(dtype, 16)));
    }
}

}  // namespace norma::test
