#include "norma/ops/rope.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/ops/elementwise.h"
#include "support/catch.h"
#include "support/compare.h"

#include <cmath>

namespace norma::test {

TEST_CASE("rope turns each pair by position times frequency") {
  const RopeTables tables = rope_tables(3, 4, 100.0, 0, {.dtype = float64});
  // Frequencies 1 and 1/10. The pairs are (0, 2) and (1, 3), or neighbours.
  const Tensor x =
      ones({3, 4}, {.dtype = float64}).mul_(tensor({1.0, 1.0, 0.0, 0.0}, {.dtype = float64}));
  const Tensor halves = apply_rope(x, tables);
  CHECK(allclose(halves[2], {std::cos(2.0), std::cos(0.2), std::sin(2.0), std::sin(0.2)},
                 {1e-14, 1e-15}));
  const Tensor neighbours = apply_rope(x, tables, {.interleaved = true});
  CHECK(allclose(neighbours[2],
                 {std::cos(2.0) - std::sin(2.0), std::sin(2.0) + std::cos(2.0), 0.0, 0.0},
                 {1e-14, 1e-15}));
  CHECK(bitwise_equal(halves[0], x[0]));
}

TEST_CASE("scores of rotated vectors depend on the distance alone") {
  const RopeTables tables = rope_tables(40, 8, 10000.0, 0, {.dtype = float64});
  const Tensor q = random({8}, 1), k = random({8}, 2);
  const Tensor qs = apply_rope(q.expand({40, 8}), tables),
               ks = apply_rope(k.expand({40, 8}), tables);
  const double expected = qs[7].matmul(ks[3]).item();
  CHECK(qs[37].matmul(ks[33]).item() == Approx(expected).epsilon(1e-12));
}

TEST_CASE("an offset continues the tables") {
  const RopeTables whole = rope_tables(10, 6), tail = rope_tables(4, 6, 10000.0, 6);
  CHECK(whole.cos.dtype() == float32);
  CHECK(bitwise_equal(tail.cos, whole.cos.narrow(0, 6, 4).contiguous()));
  CHECK(bitwise_equal(tail.sin, whole.sin.narrow(0, 6, 4).contiguous()));
}

TEST_CASE("tables that no memory holds are refused") {
  CHECK_THROWS_AS(rope_tables(std::int64_t{1} << 60, 2), Error);
  CHECK_THROWS_AS(rope_tables(std::int64_t{1} << 60, 1 << 20), Error);
}

TEST_CASE("tables are exact far out") {
  const RopeTables tables = rope_tables(1, 2, 10000.0, 1000000);
  CHECK(tables.cos.item() == Approx(std::cos(1e6)).epsilon(1e-7));
}

TEST_CASE("rope keeps the memory order of heads and leaves other columns alone") {
  const Tensor x = random({2, 5, 3, 7}, 1).to(float32);  // [B, L, H, D]
  const Tensor out = apply_rope(x.transpose(1, 2), rope_tables(5, 4));
  CHECK(out.transpose(1, 2).is_contiguous());
  CHECK(bitwise_equal(out.narrow(-1, 4, 3).contiguous(),
                      x.transpose(1, 2).narrow(-1, 4, 3).contiguous()));
}

TEST_CASE("the gradient of rope is the inverse rotation") {
  const RopeTables tables = rope_tables(4, 6, 50.0, 2, {.dtype = float64});
  const Tensor x = random({2, 4, 6}, 1).requires_grad_();
  const Tensor y = apply_rope(x, tables);
  y.backward(y.detach());
  CHECK(allclose(x.grad(), x, {1e-14, 1e-15}));  // R^T R x = x
}

}  // namespace norma::test
