#include "norma/ops/cast.h"

#include "norma/core/factory.h"
#include "norma/ops/elementwise.h"
#include "support/catch.h"
#include "support/compare.h"

namespace norma::test {

TEST_CASE("to() of the same dtype or device is the tensor itself") {
  const Tensor x = random({2, 3}, 1);
  CHECK(to(x, float64).is_same(x));
  CHECK(to(x, cpu).is_same(x));
}

TEST_CASE("gradients come back in the dtype they left") {
  const Tensor x = random({2, 3}, 1).requires_grad_();
  const Tensor y = x.to(float32).to(bfloat16).to(float64);
  (y * y).sum().backward();
  CHECK(x.grad().dtype() == float64);
  CHECK(allclose(x.grad(), x.detach().to(bfloat16).to(float64) * 2.0, {1e-2, 1e-2}));
}

TEST_CASE("nothing is recorded into integers") {
  const Tensor x = random({2, 3}, 1).requires_grad_();
  CHECK_FALSE(x.to(int64).requires_grad());
  CHECK_FALSE(x.to(bool_).to(float32).requires_grad());
}

}  // namespace norma::test
