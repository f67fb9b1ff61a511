#include "support/catch.h"

#include "norma/core/allocator.h"
#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/ops/dropout.h"
#include "norma/ops/elementwise.h"
#include "support/compare.h"

#include <cmath>

namespace norma::test {

TEST_CASE("dropout keeps exactly the elements that the random stream says") {
  // The vectorised generator against the one of core/random.h, at a length with a tail and a seed
  // of 64 bits.
  const PhiloxState state{0x123456789abcdef0ULL, (1ULL << 32) - 3};
  const double p = 0.3;
  const Tensor y = detail::dropout(ones({1003}), p, state);
  const std::vector<float> values = y.to_vector<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool kept = static_cast<double>(uniform_from_bits(philox_word(state, i))) >= p;
    REQUIRE(values[i] == (kept ? static_cast<float>(1.0 / (1.0 - p)) : 0.0F));
  }
  CHECK(allclose(detail::dropout_mask({1003}, p, state), y != 0.0));
}

TEST_CASE("dropout keeps a share of 1 - p and the mean") {
  manual_seed(1);
  const Tensor x = ones({200, 500});
  for (const double p : {0.1, 0.5, 0.9}) {
    const Tensor y = dropout(x, p);
    const double kept = (y != 0.0).to(float64).mean().item();
    const double deviation = std::sqrt(p * (1 - p) / static_cast<double>(x.numel()));
    CHECK(std::abs(kept - (1 - p)) < 5 * deviation);
    CHECK(std::abs(y.mean().item() - 1.0) < 5 * deviation / (1 - p));
  }
}

TEST_CASE("dropout repeats with the seed and moves on with each call") {
  const Tensor x = ones({4, 33});
  manual_seed(7);
  const Tensor first = dropout(x, 0.5);
  const Tensor second = dropout(x, 0.5);
  manual_seed(7);
  CHECK(bitwise_equal(dropout(x, 0.5), first));
  CHECK(bitwise_equal(dropout(x, 0.5), second));
  CHECK_FALSE(static_cast<bool>(allclose(second, first)));
}

TEST_CASE("the gradient of dropout goes through the mask of the forward") {
  manual_seed(3);
  const Tensor x = random({100}, 1, 0.5, 1.0).requires_grad_();
  const Tensor y = dropout(x, 0.4);
  dropout(x, 0.4);  // the stream moves on between forward and backward
  const Tensor dx = grad({y.sum()}, {x})[0];
  CHECK(allclose(dx * x.detach(), y.detach(), {1e-12, 0}));
}

TEST_CASE("dropout at the ends: evaluation, p = 0, p = 1") {
  const Tensor x = random({3, 4}, 1).requires_grad_();
  const PhiloxState before = default_generator().get_state();
  CHECK(dropout(x, 0.5, false).is_same(x));
  CHECK(dropout(x, 0.0).is_same(x));
  CHECK(default_generator().get_state().offset == before.offset);
  const Tensor y = dropout(x, 1.0);
  CHECK(allclose(y, zeros({3, 4})));
  CHECK(allclose(grad({y.sum()}, {x})[0], zeros({3, 4})));
}

TEST_CASE("dropout stores no mask") {
  const Tensor x = random({1 << 16}, 1).to(float32).requires_grad_();
  const std::int64_t before = memory_stats().current;
  const Tensor y = dropout(x, 0.5);
  CHECK(memory_stats().current - before <= static_cast<std::int64_t>(y.nbytes()) + 4096);
}

}  // namespace norma::test
