#include "norma/ops/activation.h"
#include "norma/core/factory.h"
#include "support/compare.h"
#include "support/op_table.h"

namespace norma::test {

namespace {

using Unary = Tensor (*)(const Tensor&);

OpEntry activation(const char* name, Unary function, Unary twin) {
  const OpFunction run = [function](const TensorList& in) { return TensorList{function(in[0])}; };
  const OpFunction composite = [twin](const TensorList& in) { return TensorList{twin(in[0])}; };
  OpEntry entry{.name = name};
  entry.samples = {{"matrix", {random({3, 5}, 1, -3.0, 3.0)}, run, composite},
                   {"scalar", {random({}, 2, 0.5, 1.0)}, run, composite},
                   {"empty", {random({2, 0}, 3)}, run, composite},
                   {"two threads", {random({257, 263}, 4, -6.0, 6.0)}, run, composite, true}};
  entry.errors = {{"integers", [function] { function(ones({2}, {.dtype = int64})); },
                   "needs a floating-point tensor; got int64"},
                  {"undefined", [function] { function(Tensor()); }, "must be defined"}};
  return entry;
}

}  // namespace

void add_activation_ops(OpTable& table) {
  table.push_back(activation("relu", relu, composite::relu));
  table.push_back(activation("silu", silu, composite::silu));
  table.push_back(activation(
      "gelu", [](const Tensor& x) { return gelu(x); },
      [](const Tensor& x) { return composite::gelu(x); }));
  table.back().errors.push_back(
      {"approximate", [] { gelu(ones({2}), "erf"); }, "must be \"none\" or \"tanh\"; got \"erf\""});
  table.push_back(activation(
      "gelu(tanh)", [](const Tensor& x) { return gelu(x, "tanh"); },
      [](const Tensor& x) { return composite::gelu(x, "tanh"); }));
  table.push_back(activation(
      "softplus", [](const Tensor& x) { return softplus(x); },
      [](const Tensor& x) { return composite::softplus(x); }));
  table.push_back(activation(
      "softplus(beta)", [](const Tensor& x) { return softplus(x, 2.5); },
      [](const Tensor& x) { return composite::softplus(x, 2.5); }));
  table.back().errors.push_back(
      {"beta", [] { softplus(ones({2}), 0.0); }, "beta must be positive; got 0"});

  const OpFunction run = [](const TensorList& in) { return TensorList{swiglu(in[0], in[1])}; };
  const OpFunction twin = [](const TensorList& in) {
    return TensorList{composite::swiglu(in[0], in[1])};
  };
  OpEntry gated{.name = "swiglu"};
  gated.samples = {{"matrix", {random({3, 5}, 11, -3.0, 3.0), random({3, 5}, 12)}, run, twin},
                   {"empty", {random({0, 5}, 13), random({0, 5}, 14)}, run, twin},
                   {"two threads",
                    {random({257, 263}, 15, -6.0, 6.0), random({257, 263}, 16)},
                    run,
                    twin,
                    true}};
  gated.errors = {
      {"shapes",
       [] {
         swiglu(ones({2, 3}), ones({3}));
       },
       "one shape; got [2, 3] and [3]"},
      {"dtypes", [] { swiglu(ones({2}), ones({2}, {.dtype = float64})); }, "one dtype"}};
  table.push_back(gated);
}

}  // namespace norma::test
