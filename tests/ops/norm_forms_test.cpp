// What the norms promise beyond values and gradients: layouts, rounding, running statistics.
#include "support/catch.h"
#include "support/compare.h"

#include "norma/core/allocator.h"
#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/node.h"
#include "norma/ops/batch_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/fused_norm.h"
#include "norma/ops/group_norm.h"
#include "norma/ops/index.h"
#include "norma/ops/norm.h"
#include "norma/ops/point_norm.h"
#include "norma/ops/power_norm.h"
#include "norma/ops/reduction.h"
#include "norma/ops/view.h"
#include "norma/ops/weight_norm.h"

#include <cmath>
#include <limits>

namespace norma::test {
namespace {

/// Operations with a name that the norms of rows answer to, on an input and a weight.
struct RowNormCase {
  const char* name;
  Tensor (*run)(const Tensor& x, const Tensor& weight);
};
const RowNormCase row_norms[] = {
    {"layer_norm", [](const Tensor& x, const Tensor& w) { return layer_norm(x, {x.size(-1)}, w); }},
    {"rms_norm",
     [](const Tensor& x, const Tensor& w) { return rms_norm(x, {x.size(-1)}, w, 1e-6); }},
    {"gemma",
     [](const Tensor& x, const Tensor& w) {
       return rms_norm(x, {x.size(-1)}, w, {}, {.eps = 1e-6, .unit_offset = true});
     }},
    {"p_rms_norm", [](const Tensor& x, const Tensor& w) { return p_rms_norm(x, 0.25, w); }},
    {"crms_norm", [](const Tensor& x, const Tensor& w) { return crms_norm(x, w); }},
    {"simple_rms_norm", [](const Tensor& x, const Tensor& w) { return simple_rms_norm(x, w); }},
    {"dual_layer_norm", [](const Tensor& x, const Tensor& w) {
       const auto [a, b] = dual_layer_norm(x, {w, {}, {}, {}});
       return a + b;
     }}};

}  // namespace

TEST_CASE("a misaligned input gives the bits of an aligned one") {
  for (const auto& [name, run] : row_norms) {
    INFO(name);
    const Tensor x = random({7 * 33}, 1).to(float32);
    const Tensor shifted = cat({zeros({1}), x}).narrow(0, 1, 7 * 33);
    const Tensor weight = random({33}, 2).to(float32);
    CHECK(bitwise_equal(run(shifted.view({7, 33}), weight), run(x.view({7, 33}), weight)));
  }
}

TEST_CASE("a gradient of stride 0 is that of ones") {
  for (const auto& [name, run] : row_norms) {
    INFO(name);
    const Tensor x = random({5, 33}, 1).to(float32).requires_grad_();
    const Tensor weight = random({33}, 2).to(float32).requires_grad_();
    const TensorList expanded = grad({run(x, weight).sum()}, {x, weight});
    const TensorList dense = grad({run(x, weight)}, {x, weight}, {.grad_outputs = {ones({5, 33})}});
    CHECK(bitwise_equal(expanded[0], dense[0]));
    CHECK(bitwise_equal(expanded[1], dense[1]));
  }
}

TEST_CASE("constant and zero rows give no NaN, forward and backward") {
  for (const auto& [name, run] : row_norms) {
    for (const double constant : {0.0, 3.7}) {
      INFO(name << " of " << constant);
      const Tensor x = full({2, 33}, constant, {.requires_grad = true});
      const Tensor weight = random({33}, 2).to(float32).requires_grad_();
      const Tensor y = run(x, weight);
      CHECK(all(isfinite(y.detach())).item() == 1.0);
      for (const Tensor& gradient :
           grad({y}, {x, weight}, {.grad_outputs = {random({2, 33}, 3).to(float32)}}))
        CHECK(all(isfinite(gradient)).item() == 1.0);
    }
  }
  const Tensor zero = zeros({1, 4}, {.dtype = float64, .requires_grad = true});
  const Tensor dy = random({1, 4}, 4);
  CHECK(allclose(grad({normalize(zero, -1, 1e-3)}, {zero}, {.grad_outputs = {dy}})[0], dy / 1e-3));
  CHECK(std::isnan(normalize(zero.detach(), -1, 0.0).to_vector<double>()[0]));
}

TEST_CASE("LayerNorm of rows with mean 1e4 and deviation 1") {
  const Tensor x = (random({8, 1024}, 1, -1.7, 1.7) + 1e4).to(float32);
  const Tensor exact = composite::layer_norm(x.to(float64), {1024});
  const auto [a, b] = dual_layer_norm(x, {});
  CHECK(allclose(a, exact, {1e-5, 1e-5}));
  CHECK(allclose(group_norm(x.view({8, 2, 512}), 1).view({8, 1024}), exact, {1e-5, 1e-5}));
  const Tensor columns = x.t().contiguous();
  // One float32 mean a channel, as in PyTorch: at 1e4 it is off by up to 5e-4.
  CHECK(allclose(batch_norm(columns, {}, {}, {}, {}, true).t(), exact, {1e-4, 6e-4}));
}

TEST_CASE("Llama rounds before the weight, Gemma and PyTorch behind it") {
  const Tensor x = random({4, 64}, 1).to(bfloat16);
  const Tensor weight = random({64}, 2, 0.5, 1.5).to(bfloat16);
  const Tensor h = composite::rms_norm(x.to(float32), {64}, {}, 1e-6);
  const Tensor llama = rms_norm(x, {64}, weight, {}, {.eps = 1e-6, .cast_before_weight = true});
  CHECK(bitwise_equal(llama, h.to(bfloat16) * weight));
  const Tensor torch = rms_norm(x, {64}, weight, 1e-6);
  CHECK(bitwise_equal(torch, (h * weight.to(float32)).to(bfloat16)));
  CHECK_FALSE(bitwise_equal(llama, torch));
  // 1 + weight in bfloat16 would lose these weights.
  const Tensor small = full({64}, 1e-3, {.dtype = bfloat16});
  const Tensor gemma = rms_norm(x, {64}, small, {}, {.eps = 1e-6, .unit_offset = true});
  CHECK(bitwise_equal(gemma, (h * (1.0 + small.to(float32))).to(bfloat16)));
}

TEST_CASE("the fused residual equals the steps, and keeps neither operand") {
  const Tensor x = random({5, 33}, 1).to(float32), r = random({5, 33}, 2).to(float32);
  const Tensor weight = random({33}, 3).to(float32);
  const auto [y, sum] = add_layer_norm(x, r, {33}, weight);
  CHECK(bitwise_equal(sum, r + x));
  CHECK(bitwise_equal(y, layer_norm(sum, {33}, weight)));
  // The gradient of the residual stream passes the norm by: t = dsum + J^T dy, not J^T (dsum + dy).
  const Tensor leaf = x.to(float64).requires_grad_();
  const auto [out, stream] = add_layer_norm(leaf, r.to(float64), {33});
  const Tensor g = random({5, 33}, 4);
  CHECK(allclose(grad({out, stream}, {leaf}, {.grad_outputs = {zeros_like(g), g}})[0], g));
}

TEST_CASE("dropout in the fused residual is that of dropout") {
  const Tensor x = ones({7, 33}), r = zeros({7, 33});
  const PhiloxState state{.seed = 5, .offset = 9};
  const auto [y, sum] = detail::add_norm(false, x, r, {33}, {}, {}, {.dropout_p = 0.4}, state);
  CHECK(bitwise_equal(
      sum, composite::add_norm(false, x, r, {33}, {}, {}, {.dropout_p = 0.4}, state).second));
  CHECK(amin(sum).item() == 0.0);
}

TEST_CASE("running statistics: unbiased variance, momentum, no history") {
  const Tensor x = random({4, 3}, 1);
  const Tensor mean = zeros({3}, {.dtype = float64}), var = ones({3}, {.dtype = float64});
  const Tensor y = batch_norm(x.clone().requires_grad_(), mean, var, {}, {}, true, 0.25);
  CHECK(allclose(mean, 0.25 * x.mean({0})));
  CHECK(allclose(var, 0.75 + 0.25 * norma::var(x, {0})));
  CHECK_FALSE(mean.requires_grad());
  const Tensor biased = ones({3}, {.dtype = float64});
  regularized_batch_norm(x, {}, mean, biased, {}, {}, true, {.momentum = 0.5});
  CHECK(allclose(biased, 0.5 + 0.5 * norma::var(x, {0}, 0)));
}

TEST_CASE("padding does not move the statistics of masked_batch_norm") {
  const Tensor x = random({2, 4, 3}, 1);
  const Tensor mask = tensor({{0.0, 0.0, 1.0, 1.0}, {0.0, 0.0, 0.0, 1.0}}) > 0.5;
  const Tensor garbage = masked_fill(x, mask.unsqueeze(-1), 1e6);
  const auto statistics = [&](const Tensor& input) {
    Tensor mean = zeros({3}, {.dtype = float64}), var = ones({3}, {.dtype = float64});
    masked_batch_norm(input, mask, mean, var, {}, {}, true);
    return TensorList{mean, var};
  };
  CHECK(allclose(statistics(garbage)[0], statistics(x)[0]));
  CHECK(allclose(statistics(garbage)[1], statistics(x)[1]));
}

TEST_CASE("moments of parts merge to those of the whole") {
  const Tensor x = random({100, 5}, 1) + 1e3;
  const Moments whole = channel_moments(x);
  const Moments merged =
      merge_moments({channel_moments(x.narrow(0, 0, 7)), channel_moments(x.narrow(0, 7, 60)),
                     channel_moments(x.narrow(0, 67, 33))});
  CHECK(allclose(merged.mean, whole.mean, {1e-13, 0}));
  CHECK(allclose(merged.variance, whole.variance, {1e-9, 0}));
  CHECK(merged.count.item() == 100.0);
}

TEST_CASE("power_norm has no second derivative, and says so") {
  const Tensor x = random({4, 3}, 1).requires_grad_();
  const Tensor phi = ones({3}), nu = zeros({3});
  const Tensor y = power_norm(x, {}, phi, nu, {}, {}, true, 1);
  CHECK_THROWS_AS(grad({y.sum()}, {x}, {.create_graph = true}), NotImplementedError);
}

TEST_CASE("instance_norm moves its running statistics as PyTorch does") {
  const Tensor x = random({2, 3, 5}, 1);
  const Tensor mean = zeros({3}, {.dtype = float64}), var = ones({3}, {.dtype = float64});
  instance_norm(x, mean, var);
  CHECK(allclose(mean, 0.1 * x.mean({-1}).mean({0})));
  CHECK(allclose(var, 0.9 + 0.1 * norma::var(x, {-1}).mean({0})));
}

TEST_CASE("unit_norm_ leaves zero vectors alone") {
  const Tensor weight = tensor({{3.0, 4.0}, {0.0, 0.0}}, {.requires_grad = true});
  unit_norm_(weight);
  CHECK(allclose(weight.detach(), {0.6, 0.8, 0.0, 0.0}));
}

TEST_CASE("unit_norm_ makes no row longer than 1, however few digits are left of its length") {
  // The squares of 1e-25 are below every float32.
  for (const double size : {1e-30, 1e-25, 1e-20, 1e-13}) {
    const Tensor weight = full({1, 4}, size);
    unit_norm_(weight);
    CHECK(vector_norm(weight, {-1}).item() <= 1.0001);
    CHECK(isfinite(weight).all().item<bool>());
  }
}

TEST_CASE("nodes of the tape bear the name of the norm that was called") {
  const auto leaf = [](const Shape& shape) { return ones(shape, {.requires_grad = true}); };
  const Tensor x = leaf({2, 4}), w = ones({4}), volume = leaf({2, 4, 3}), matrix = leaf({4, 3});
  const Tensor mean = zeros({4}), var = ones({4});
  const std::pair<const char*, Tensor> results[] = {
      {"layer_scale", layer_scale(x, w)},
      {"head_scale", head_scale(x, ones({2}))},
      {"batch_norm", batch_norm(x, {}, {}, w, {}, true)},
      {"batch_norm", batch_norm(x, mean, var)},
      {"masked_batch_norm", masked_batch_norm(x, {}, mean, var, {}, {}, true)},
      {"masked_batch_norm", masked_batch_norm(x, {}, mean, var)},
      {"regularized_batch_norm", regularized_batch_norm(x, {}, mean, var, {}, {}, true).output},
      {"regularized_batch_norm", regularized_batch_norm(x, {}, mean, var).output},
      {"instance_norm", instance_norm(volume)},
      {"instance_norm", instance_norm(volume, mean, var, {}, {}, false)},
      {"group_norm", group_norm(volume, 2)},
      {"add_layer_norm", add_layer_norm(x, x, {4}).first},
      {"add_rms_norm", add_rms_norm(x, x, {4}).first},
      {"dual_layer_norm", dual_layer_norm(x, {w, {}, w, {}}).first},
      {"dual_rms_norm", dual_rms_norm(x, {w, {}, w, {}}).first},
      {"spectral_norm", spectral_norm(matrix, full({4}, 0.5), full({3}, 0.5), 0)}};
  for (const auto& [name, result] : results) CHECK(result.grad_fn()->name() == name);
}

TEST_CASE("a batch of nothing but padding leaves running statistics as they were") {
  // As torch.nn.functional.batch_norm with an empty batch.
  const Tensor x = random({2, 3}, 1).to(float32), padding = ones({2}) > 0.0;
  const Tensor mean = full({3}, 2.0), var = full({3}, 3.0);
  masked_batch_norm(x, padding, mean, var, {}, {}, true);
  regularized_batch_norm(x, padding, mean, var, {}, {}, true);
  batch_norm(empty({0, 3}), mean, var, {}, {}, true);
  power_norm(x, padding, var, mean, {}, {}, true, 2);
  instance_norm(empty({0, 3, 4}), mean, var);
  CHECK(allclose(mean, {2.0, 2.0, 2.0}));
  CHECK(allclose(var, {3.0, 3.0, 3.0}));
}

}  // namespace norma::test
