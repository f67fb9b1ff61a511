// A project of its own that knows nothing but norma's public target and umbrella header.
#include <norma/norma.h>

#include <cmath>
#include <iostream>

int main() {
  using namespace norma;
  // d/dW of mean((x W)^2), against the formula 2/n x^T x W: matrix products, tape and reductions
  // all link.
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});
  const Tensor weight = tensor({{0.5, -1.0}, {2.0, 0.25}}).requires_grad_();
  x.matmul(weight).square().mean().backward();
  const Tensor expected = x.t().matmul(x).matmul(weight.detach()) * 0.5;
  const double error = (weight.grad() - expected).abs().sum().item();
  std::cout << weight.grad() << "\nerror " << error << '\n';
  if (!(error < 1e-4)) return 1;

  try {
    x.matmul(tensor({1.0, 2.0, 3.0}));
  } catch (const Error& failure) {  // The hierarchy and its typeinfo cross the library's border.
    std::cout << failure.what() << '\n';
    return failure.operation() == "matmul" ? 0 : 1;
  }
  return 1;
}
