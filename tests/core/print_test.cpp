#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "support/catch.h"

#include <cmath>
#include <sstream>

namespace norma {
namespace {

// Expected texts are PyTorch's, but for ", dtype=" without "torch." and the names of operations.

std::vector<double> counting(std::int64_t count, double first = 0) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<double>(i);
  return values;
}

TEST_CASE("scalars print without brackets", "[print]") {
  CHECK(to_string(tensor(1.5)) == "tensor(1.5000)");
  CHECK(to_string(tensor(3)) == "tensor(3)");
  CHECK(to_string(tensor(3.0)) == "tensor(3.)");
  CHECK(to_string(tensor(true)) == "tensor(True)");
  CHECK(to_string(tensor(1e-10)) == "tensor(1.0000e-10)");
  CHECK(to_string(Tensor()) == "tensor(undefined)");
}

TEST_CASE("columns align", "[print]") {
  CHECK(to_string(tensor({{1.541, -0.2934, -2.1788}, {0.5684, -1.0845, -1.39861}})) ==
        "tensor([[ 1.5410, -0.2934, -2.1788],\n"
        "        [ 0.5684, -1.0845, -1.3986]])");
  CHECK(to_string(tensor({{-1, 20}, {300, 4}})) == "tensor([[ -1,  20],\n        [300,   4]])");
  CHECK(to_string(tensor({true, false})) == "tensor([ True, False])");
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(to_string(tensor({nan, 1.5, -infinity})) == "tensor([   nan, 1.5000,   -inf])");
  CHECK(to_string(tensor({nan, 1.0, -2.0})) == "tensor([nan,  1., -2.])");
  CHECK(to_string(tensor({nan, 0.0, infinity})) == "tensor([nan,  0., inf])");
}

TEST_CASE("whole numbers have no decimals, wide ranges an exponent", "[print]") {
  CHECK(to_string(tensor({1.0, 2.0, 2000.0})) == "tensor([   1.,    2., 2000.])");
  CHECK(to_string(tensor({1e-8, 1.0, 100.0})) == "tensor([1.0000e-08, 1.0000e+00, 1.0000e+02])");
  CHECK(to_string(tensor({1e9, 1.0})) == "tensor([1.0000e+09, 1.0000e+00])");
}

TEST_CASE("int64 values print exactly", "[print]") {
  const std::vector<std::int64_t> values = {9007199254740993,
                                            std::numeric_limits<std::int64_t>::min()};
  CHECK(to_string(from_values(values, {2})) ==
        "tensor([    9007199254740993, -9223372036854775808])");
}

TEST_CASE("matrices of a batch are separated by an empty line", "[print]") {
  CHECK(to_string(from_values(counting(8), {2, 2, 2}, {.dtype = int64})) ==
        "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])");
}

TEST_CASE("empty tensors say their size", "[print]") {
  CHECK(to_string(empty({0})) == "tensor([])");
  CHECK(to_string(empty({0, 4})) == "tensor([], size=(0, 4))");
  CHECK(to_string(empty({2, 0, 3}, {.dtype = int64})) == "tensor([], size=(2, 0, 3), dtype=int64)");
}

TEST_CASE("long rows wrap", "[print]") {
  CHECK(to_string(from_values(counting(20, 100), {20}, {.dtype = int64})) ==
        "tensor([100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113,\n"
        "        114, 115, 116, 117, 118, 119])");
}

TEST_CASE("large tensors are abbreviated", "[print]") {
  CHECK(to_string(from_values(counting(2000), {2000}, {.dtype = int64})) ==
        "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])");
  CHECK(to_string(from_values(counting(1500), {750, 2}, {.dtype = int64})) ==
        "tensor([[   0,    1],\n        [   2,    3],\n        [   4,    5],\n        ...,\n"
        "        [1494, 1495],\n        [1496, 1497],\n        [1498, 1499]])");
  // 1000 elements are not many.
  CHECK(to_string(from_values(counting(1000), {1000})).find("...") == std::string::npos);
}

TEST_CASE("only what is not the default follows the values", "[print]") {
  CHECK(to_string(tensor({1.0, 2.0}, {.dtype = float64})) == "tensor([1., 2.], dtype=float64)");
  CHECK(to_string(tensor({1.25, 2.0}, {.dtype = float16})) ==
        "tensor([1.2500, 2.0000], dtype=float16)");
  CHECK(to_string(tensor({1, 2}, {.dtype = int32})) == "tensor([1, 2], dtype=int32)");
  CHECK(to_string(tensor({1.0}, {.dtype = float64, .requires_grad = true})) ==
        "tensor([1.], dtype=float64, requires_grad=True)");
  CHECK(to_string(from_values(counting(11, 1000.5), {11}, {.dtype = float64})) ==
        "tensor([1000.5000, 1001.5000, 1002.5000, 1003.5000, 1004.5000, 1005.5000,\n"
        "        1006.5000, 1007.5000, 1008.5000, 1009.5000, 1010.5000], dtype=float64)");
}

struct Halve : Function<Halve> {
  static constexpr const char* name = "halve";
  static Tensor forward(Context& /*ctx*/, const Tensor& x) { return full(x.shape(), x.item() / 2); }
  static TensorList backward(Context& /*ctx*/, const Tensor& /*grad_output*/) { return {Tensor()}; }
};

TEST_CASE("results name the operation that made them", "[print]") {
  CHECK(to_string(Halve::apply(tensor(3.0, {.requires_grad = true}))) ==
        "tensor(1.5000, grad_fn=<halve>)");
}

TEST_CASE("views print what they show", "[print]") {
  const Tensor matrix = from_values(counting(6), {2, 3}, {.dtype = int64});
  CHECK(to_string(matrix.t()) == "tensor([[0, 3],\n        [1, 4],\n        [2, 5]])");
  CHECK(to_string(matrix.select(1, 2)) == "tensor([2, 5])");
  std::ostringstream stream;
  stream << matrix;
  CHECK(stream.str() == to_string(matrix));
}

}  // namespace
}  // namespace norma
