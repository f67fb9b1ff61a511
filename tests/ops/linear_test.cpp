#include "norma/ops/linear.h"

#include "norma/core/allocator.h"
#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/ops/threads.h"
#include "support/catch.h"
#include "support/compare.h"

namespace norma::test {

TEST_CASE("linear adds the bias before the activation") {
  const Tensor x = tensor({{1.0, 2.0}}), w = tensor({{1.0, 1.0}, {-1.0, 0.0}}),
               b = tensor({-5.0, 3.0});
  CHECK(linear(x, w, b).to_vector<double>() == std::vector<double>{-2, 2});
  CHECK(linear(x, w, b, Activation::relu).to_vector<double>() == std::vector<double>{0, 2});
}

TEST_CASE("linear without in_features is the bias") {
  const Tensor y = linear(zeros({2, 0}), zeros({3, 0}), tensor({1.0, 2.0, 3.0}));
  CHECK(y.to_vector<double>() == std::vector<double>{1, 2, 3, 1, 2, 3});
}

TEST_CASE("16-bit linear rounds once") {
  // 1 + 2^-9 is no bfloat16: the product and the bias must meet before the rounding.
  const TensorOptions options{.dtype = bfloat16};
  const Tensor x = tensor({{1.0, 0.001953125}}, options);
  CHECK(linear(x, ones({1, 2}, options), tensor({-1.0}, options)).item() == 0.001953125);
}

TEST_CASE("the bias gradient has the same bits for every number of threads") {
  const Tensor x = random({3000, 8}, 1).to(float32), w = random({5, 8}, 2).to(float32);
  const Tensor g = random({3000, 5}, 3).to(float32);
  TensorList gradients;
  const int before = get_num_threads();
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    const Tensor b = zeros({5}, {.requires_grad = true});
    linear(x, w, b, Activation::gelu).backward(g);
    gradients.push_back(b.grad());
  }
  set_num_threads(before);
  CHECK(bitwise_equal(gradients[1], gradients[0]));
  CHECK(bitwise_equal(gradients[2], gradients[0]));
}

TEST_CASE("linear keeps the value before the activation only when there is one") {
  const Tensor x = random({64, 32}, 1).to(float32),
               w = random({16, 32}, 2).to(float32).requires_grad_();
  const auto kept = [&](Activation activation) {
    const auto before = memory_stats().current;
    const Tensor y = linear(x, w, {}, activation);
    return memory_stats().current - before;
  };
  CHECK(kept(Activation::silu) == 2 * kept(Activation::none));
}

}  // namespace norma::test
