// Comparing tensors in tests, with a text that says where they differ.
#pragma once

#include "norma/core/tensor.h"

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace norma::test {

struct Tolerance {
  double rtol = 0.0;
  double atol = 0.0;
};

/// The outcome of a comparison: `CHECK(allclose(y, expected, {1e-5, 1e-6}))` prints the text when
/// it fails.
struct Comparison {
  bool ok = true;
  std::string text;
  explicit operator bool() const { return ok; }
};
std::ostream& operator<<(std::ostream& stream, const Comparison& comparison);

/// |actual - expected| <= atol + rtol * |expected| everywhere, NaN equal to NaN, shapes equal;
/// dtypes may differ.
Comparison allclose(const Tensor& actual, const Tensor& expected,
                    const Tolerance& tolerance = {1e-5, 1e-7});
/// The same against a list of values.
Comparison allclose(const Tensor& actual, const std::vector<double>& expected,
                    const Tolerance& tolerance = {1e-5, 1e-7});
/// Shape, dtype and every bit equal.
Comparison bitwise_equal(const Tensor& actual, const Tensor& expected);

/// A detached copy in another dtype (integers and bools stay) or layout.
Tensor converted(const Tensor& tensor, DType dtype);
/// The same values with gaps between them and dimensions reversed in memory.
Tensor noncontiguous(const Tensor& tensor);
/// Uniform in [-1, 1], float64, from a seed of its own: independent of the default generator.
Tensor random(const Shape& shape, std::uint64_t seed, double low = -1.0, double high = 1.0);

}  // namespace norma::test
