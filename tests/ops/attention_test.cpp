// What the generic suites do not see of attention: exact semantics of masks, memory, layouts,
// dropout.
#include "norma/ops/attention.h"

#include "norma/core/allocator.h"
#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/ops/threads.h"
#include "support/catch.h"
#include "support/compare.h"

#include <limits>

namespace norma::test {

namespace {

struct Inputs {
  Tensor q, k, v;
};

Inputs inputs(const Shape& query, const Shape& key, DType dtype = float32) {
  return {random(query, 1).to(dtype), random(key, 2).to(dtype), random(key, 3).to(dtype)};
}

}  // namespace

TEST_CASE("attention to equal keys is the mean of the values") {
  const Tensor q = ones({1, 1, 1, 2}), k = zeros({1, 1, 4, 2});
  const Tensor v = tensor({1.0, 2.0, 3.0, 6.0}).view({1, 1, 4, 1});
  CHECK(scaled_dot_product_attention(q, k, v).item() == Approx(3.0));
}

TEST_CASE("causal attention counts queries and keys from the first, as PyTorch") {
  const Tensor q = zeros({1, 1, 2, 1}), k = zeros({1, 1, 4, 1});
  const Tensor v = tensor({1.0, 2.0, 3.0, 6.0}).view({1, 1, 4, 1});
  // One key for the first query, two for the second; more queries than keys: all keys.
  CHECK(allclose(scaled_dot_product_attention(q, k, v, {.is_causal = true}), {1.0, 1.5}));
  const Tensor few = k.narrow(2, 0, 1);
  CHECK(allclose(scaled_dot_product_attention(q, few, v.narrow(2, 3, 1), {.is_causal = true}),
                 {6.0, 6.0}));
}

TEST_CASE("a query without keys gives zeros and no gradient") {
  const auto [q, k, v] = inputs({1, 1, 4, 3}, {1, 1, 2, 3}, float64);
  for (const Tensor& x : {q, k, v}) x.requires_grad_();
  // Causality leaves the first query the first key, which is padding.
  const Tensor padding = tensor({{true, false}});
  const Tensor out =
      scaled_dot_product_attention(q, k, v, {.is_causal = true, .key_padding_mask = padding});
  CHECK(out.select(2, 0).to_vector<double>() == std::vector<double>(3, 0.0));
  out.backward(random(out.shape(), 5));
  for (const Tensor& x : {q, k, v})
    for (const double value : x.grad().to_vector<double>()) CHECK(std::isfinite(value));
  CHECK(q.grad().select(2, 0).to_vector<double>() == std::vector<double>(3, 0.0));
}

TEST_CASE("what padding holds does not matter") {
  for (const int padded_from : {3, 0}) {  // trailing, and leading keys
    const auto [q, k, v] = inputs({1, 2, 3, 4}, {1, 2, 5, 4});
    const Tensor mask = zeros({1, 5}, {.dtype = bool_});
    mask.narrow(1, padded_from, 2).fill_(1.0);
    const Tensor clean = scaled_dot_product_attention(q, k, v, {.key_padding_mask = mask});
    k.narrow(2, padded_from, 2).fill_(std::numeric_limits<double>::quiet_NaN());
    v.narrow(2, padded_from, 2).fill_(std::numeric_limits<double>::infinity());
    CHECK(bitwise_equal(scaled_dot_product_attention(q, k, v, {.key_padding_mask = mask}), clean));
  }
}

TEST_CASE("bool masks, added masks and padding masks say the same") {
  const auto [q, k, v] = inputs({2, 2, 3, 4}, {2, 2, 4, 4}, float64);
  const Tensor ignore =
      from_values(std::vector<double>{0, 1, 0, 0, 0, 0, 1, 1}, {2, 4}, {.dtype = bool_});
  const Tensor attend =
      from_values(std::vector<double>{1, 0, 1, 1, 1, 1, 0, 0}, {2, 1, 1, 4}, {.dtype = bool_});
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor added =
      from_values(std::vector<double>{0, -inf, 0, 0, 0, 0, -inf, -inf}, {2, 1, 1, 4});
  const Tensor expected = scaled_dot_product_attention(q, k, v, {.key_padding_mask = ignore});
  CHECK(allclose(scaled_dot_product_attention(q, k, v, {.attn_mask = attend}), expected,
                 {1e-12, 1e-13}));
  CHECK(allclose(scaled_dot_product_attention(q, k, v, {.attn_mask = added}), expected,
                 {1e-12, 1e-13}));
  const DetectAnomalyGuard guard;  // the -inf of a mask is nobody's mistake
  q.requires_grad_();
  scaled_dot_product_attention(q, k, v, {.attn_mask = attend}).sum().backward();
  CHECK(q.grad().defined());
}

TEST_CASE("attention without the head dimension") {
  const auto [q, k, v] = inputs({2, 3, 4}, {2, 5, 4});
  const Tensor mask = random({2, 3, 5}, 4);
  const Tensor out = scaled_dot_product_attention(q, k, v, {.attn_mask = mask});
  CHECK(out.shape() == Shape{2, 3, 4});
  const Tensor with_heads = scaled_dot_product_attention(
      q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1), {.attn_mask = mask.unsqueeze(1)});
  CHECK(bitwise_equal(out, with_heads.squeeze(1)));
}

TEST_CASE("heads split from a projection stay in its order") {
  const Tensor x = random({2, 5, 3, 4}, 1).to(float32).requires_grad_();  // [B, L, H, D]
  const Tensor heads = x.transpose(1, 2);
  const Tensor out = scaled_dot_product_attention(heads, heads, heads, {.is_causal = true});
  CHECK(out.shape() == Shape{2, 3, 5, 4});
  CHECK(out.transpose(1, 2).is_contiguous());
  const Tensor packed = scaled_dot_product_attention(heads.contiguous(), heads.contiguous(),
                                                     heads.contiguous(), {.is_causal = true});
  CHECK(bitwise_equal(out.contiguous(), packed.contiguous()));
}

TEST_CASE("attention keeps no matrix of queries and keys") {
  const std::int64_t length = 512;
  const auto [q, k, v] = inputs({2, 4, length, 8}, {2, 4, length, 8});
  q.requires_grad_();
  const std::int64_t before = memory_stats().current;
  const Tensor out = scaled_dot_product_attention(q, k, v, {.dropout_p = 0.1, .is_causal = true});
  // The result and the log-sum-exp of each row: 9 numbers a query, against 512 of a matrix.
  CHECK(memory_stats().current - before < 2 * 4 * length * 10 * 4);
  out.backward(ones_like(out));
  CHECK(q.grad().defined());
}

TEST_CASE("attention dropout keeps the expectation and repeats with the seed") {
  const Tensor q = zeros({8, 4, 64, 8}), k = zeros({8, 4, 64, 8}), v = ones({8, 4, 64, 8});
  manual_seed(3);
  const Tensor first = scaled_dot_product_attention(q, k, v, {.dropout_p = 0.25});
  const Tensor second = scaled_dot_product_attention(q, k, v, {.dropout_p = 0.25});
  CHECK_FALSE(bitwise_equal(first, second));
  // 131072 weights: the mean of kept / 0.75 has a standard deviation of 0.0016.
  CHECK(first.mean().item() == Approx(1.0).margin(0.008));
  manual_seed(3);
  CHECK(bitwise_equal(scaled_dot_product_attention(q, k, v, {.dropout_p = 0.25}), first));
}

TEST_CASE("large scores neither overflow nor lose the softmax") {
  const Tensor q = full({1, 1, 1, 1}, 1000.0), k = tensor({1.0, -1.0}).view({1, 1, 2, 1});
  const Tensor v = tensor({2.0, 5.0}).view({1, 1, 2, 1});
  CHECK(scaled_dot_product_attention(q, k, v).item() == 2.0);
}

TEST_CASE("attention gradients have the same bits for every number of threads") {
  const auto [q, k, v] = inputs({2, 6, 70, 16}, {2, 2, 70, 16});
  const Tensor g = random({2, 6, 70, 16}, 9).to(float32);
  std::vector<TensorList> gradients;
  const int before = get_num_threads();
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    const TensorList leaves{q.clone().requires_grad_(), k.clone().requires_grad_(),
                            v.clone().requires_grad_()};
    const Tensor out = scaled_dot_product_attention(leaves[0], leaves[1], leaves[2],
                                                    {.is_causal = true, .enable_gqa = true});
    gradients.push_back(grad({out}, leaves, {.grad_outputs = {g}}));
  }
  set_num_threads(before);
  for (std::size_t run = 1; run < gradients.size(); ++run)
    for (std::size_t i = 0; i < 3; ++i) CHECK(bitwise_equal(gradients[run][i], gradients[0][i]));
}

}  // namespace norma::test
