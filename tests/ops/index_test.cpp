// Values, dtypes and gradients of indexing that the generic suites cannot see.
#include "norma/ops/index.h"

#include <omp.h>

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/view.h"
#include "support/catch.h"
#include "support/compare.h"

namespace norma::test {

TEST_CASE("gather and scatter_add by their definition") {
  const Tensor x = tensor({{1., 2.}, {3., 4.}});
  CHECK(allclose(gather(x, 1, tensor({{0, 0}, {1, 0}})), tensor({{1., 1.}, {4., 3.}})));
  CHECK(allclose(gather(x, 0, tensor({{1, 0}})), tensor({{3., 2.}})));
  CHECK(allclose(scatter_add(zeros({3}), 0, tensor({0, 2, 0}), tensor({1., 2., 4.})), {5, 0, 2}));
  CHECK(allclose(scatter(zeros({3}), 0, tensor({0, 2, 0}), tensor({1., 2., 4.})), {4, 0, 2}));
  const Tensor counts =
      scatter_add(zeros({3}, {.dtype = int64}), 0, tensor({2, 2, 1}), tensor({1, 1, 1}));
  CHECK(counts.to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 2});
  // int32 indices, as PyTorch's gather refuses but its index_select takes.
  CHECK(
      allclose(index_select(x, 1, tensor({1, 0}, {.dtype = int32})), tensor({{2., 1.}, {4., 3.}})));
}

TEST_CASE("cat promotes dtypes and sends each gradient back in its own") {
  const Tensor a = random({2, 2}, 1).to(float32).requires_grad_();
  const Tensor b = random({2, 1}, 2).requires_grad_();
  const Tensor joined = cat({a, b, tensor({{1}, {2}})}, 1);
  CHECK(joined.dtype() == float64);
  CHECK(joined.shape() == Shape{2, 4});
  (joined * joined).sum().backward();
  CHECK(a.grad().dtype() == float32);
  CHECK(allclose(b.grad(), b.detach() * 2.0));
  // The same tensor twice gets both gradients.
  b.set_grad({});
  stack({b, b}).sum().backward();
  CHECK(allclose(b.grad(), {2, 2}));
}

TEST_CASE("one_hot") {
  CHECK(one_hot(tensor({1, 0})).to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 1, 0});
  CHECK(one_hot(tensor({{2}}), 4).shape() == Shape{1, 1, 4});
  CHECK(one_hot(tensor({{2}}), 4).dtype() == int64);
  CHECK(one_hot(zeros({0}, {.dtype = int64}), 3).shape() == Shape{0, 3});
}

TEST_CASE("embedding leaves out the gradient of padding") {
  const Tensor weight = random({4, 2}, 1).requires_grad_();
  const Tensor ids = tensor({{3, 1}, {1, 0}});
  const Tensor rows = embedding(ids, weight, -1);
  CHECK(rows.shape() == Shape{2, 2, 2});
  CHECK(allclose(rows[0][0].detach(), weight[3].detach()));
  rows.sum().backward();
  CHECK(allclose(weight.grad(), tensor({{1., 1.}, {2., 2.}, {0., 0.}, {0., 0.}})));
  // Under create_graph padding has no derivative either.
  const Tensor seed = random({2, 2, 2}, 2).requires_grad_();
  const Tensor first = grad({embedding(ids, weight, 3)}, {weight},
                            {.grad_outputs = {seed}, .create_graph = true})[0];
  const Tensor second = grad({first.sum()}, {seed})[0];
  CHECK(allclose(second, {0, 0, 1, 1, 1, 1, 1, 1}));
}

TEST_CASE("the gradient of an embedding is the same for any number of threads") {
  const std::int64_t vocabulary = 20000;
  const Tensor ids =
      (random({16000}, 3, 0.0, 1.0) * random({16000}, 4, 0.0, 1.0) * 20000.0).to(int64);
  const Tensor dy = random({16000, 32}, 5).to(float32);
  const auto gradient = [&](int threads, DType dtype) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    const Tensor weight = zeros({vocabulary, 32}, {.dtype = dtype, .requires_grad = true});
    embedding(ids, weight).backward(dy.to(dtype));
    omp_set_num_threads(before);
    return weight.grad();
  };
  const Tensor one = gradient(1, float32);
  for (const int threads : {2, 3, 7}) CHECK(bitwise_equal(gradient(threads, float32), one));
  CHECK(allclose(gradient(3, float64), one, {1e-5, 1e-5}));
  CHECK(allclose(gradient(3, bfloat16).to(float32), one, {2e-2, 2e-2}));
  // The definition: every row of dy lands in its row of the table.
  const std::vector<std::int64_t> at = ids.to_vector<std::int64_t>();
  std::vector<double> expected(static_cast<std::size_t>(vocabulary * 32), 0.0);
  for (std::size_t n = 0; n < at.size(); ++n)
    for (std::size_t j = 0; j < 32; ++j)
      expected[static_cast<std::size_t>(at[n]) * 32 + j] += double{dy.data<float>()[n * 32 + j]};
  CHECK(allclose(one.reshape({vocabulary * 32}), expected, {1e-5, 1e-5}));
}

TEST_CASE("tables beyond 65536 rows") {
  const Tensor weight = zeros({70000, 1}, {.dtype = float64, .requires_grad = true});
  embedding(tensor({69999, 3, 65539, 3}), weight).sum().backward();
  const Tensor g = weight.grad();
  CHECK(g.sum().item() == 4.0);
  CHECK(g[3].item() == 2.0);
  CHECK(g[69999].item() == 1.0);
  CHECK(g[65539].item() == 1.0);
}

TEST_CASE("index_select of a tensor without elements keeps the order of its dimensions") {
  CHECK(index_select(zeros({0, 4}), 1, tensor({1, 2})).shape() == Shape{0, 2});
  const Tensor none = from_values(std::vector<std::int64_t>{}, {0});
  CHECK(index_select(zeros({2, 0, 3}), 1, none).shape() == Shape{2, 0, 3});
  const Tensor x = zeros({2, 0, 3}, {.requires_grad = true});
  index_select(x, 2, tensor({0, 0})).sum().backward();
  CHECK(x.grad().shape() == Shape{2, 0, 3});
}

}  // namespace norma::test
