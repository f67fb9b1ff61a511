// TransformerClassifier: pooling, padding, gradient flow, modes, configuration.
#include "norma/nn/classifier.h"

#include "norma/core/allocator.h"
#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/random.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/index.h"
#include "norma/ops/loss.h"
#include "norma/ops/reduction.h"
#include "norma/ops/threads.h"
#include "norma/optim/adamw.h"
#include "support/catch.h"
#include "support/compare.h"

#include <sys/resource.h>

#include <algorithm>

using namespace norma;
using norma::test::allclose;

namespace {

nn::ClassifierConfig small() {
  return {.vocab_size = 20,
          .num_classes = 3,
          .max_length = 10,
          .encoder = {.d_model = 8, .num_heads = 2, .d_ff = 12, .num_layers = 2, .dropout = 0.1}};
}

/// One review of four tokens, padded to `length`.
std::pair<Tensor, Tensor> padded_to(std::int64_t length) {
  std::vector<std::int64_t> tokens{3, 7, 19, 7};
  tokens.resize(static_cast<std::size_t>(length), 0);
  const Tensor row = from_values(tokens, {1, length});
  return {row, row == 0.0};
}

}  // namespace

TEST_CASE("masked_pool leaves padding out") {
  const Tensor states = tensor({{1.0, -4.0}, {3.0, -2.0}, {100.0, 100.0}}).reshape({1, 3, 2});
  const Tensor mask = tensor({{false, false, true}});
  CHECK(allclose(nn::masked_pool(states, mask, nn::Pooling::mean), tensor({{2.0, -3.0}})));
  CHECK(allclose(nn::masked_pool(states, mask, nn::Pooling::max), tensor({{3.0, -2.0}})));
  CHECK(allclose(nn::masked_pool(states, mask, nn::Pooling::mean_max),
                 tensor({{2.0, -3.0, 3.0, -2.0}})));
  CHECK(allclose(nn::masked_pool(states, mask, nn::Pooling::cls), tensor({{1.0, -4.0}})));
  CHECK(allclose(nn::masked_pool(states, {}, nn::Pooling::max), tensor({{100.0, 100.0}})));
  CHECK(
      allclose(nn::masked_pool(states, {}, nn::Pooling::mean).select(1, 0), tensor({104.0 / 3.0})));

  const Tensor all = tensor({{true, true, true}});
  CHECK(allclose(nn::masked_pool(states, all, nn::Pooling::mean_max), zeros({1, 4})));
  {
    const DetectAnomalyGuard guard;  // the -inf that hides padding is nobody's mistake
    CHECK_NOTHROW(nn::masked_pool(states, mask, nn::Pooling::max));
  }
  CHECK_THROWS_AS(nn::masked_pool(states, zeros({1, 3}), nn::Pooling::mean), DTypeError);
  CHECK_THROWS_AS(nn::masked_pool(states, tensor({{true}}), nn::Pooling::mean), ShapeError);
}

TEST_CASE("nGPT has logits of unit vectors times learned s_z") {
  nn::ClassifierConfig config{.vocab_size = 9, .num_classes = 3};
  config.encoder = {.d_model = 4,
                    .num_heads = 2,
                    .num_layers = 1,
                    .placement = nn::NormPlacement::ngpt,
                    .dropout = 0.0};
  nn::TransformerClassifier model(config);
  const Tensor tokens = tensor({{3, 5, 1}});
  const Tensor before = model(tokens);
  {
    const NoGradGuard no_grad;
    CHECK(allclose(model.s_z, full({3}, 0.5)));
    model.s_z.mul_(tensor({1.0, 2.0, -3.0}));
  }
  CHECK(allclose(model(tokens), before * tensor({1.0, 2.0, -3.0})));
  const auto parameters = model.named_parameters();
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [](const auto& p) { return p.name == "s_z"; });
  REQUIRE(found != parameters.end());
  CHECK(found->kind == nn::ParameterKind::norm);  // no weight decay
  config.encoder.placement = nn::NormPlacement::pre;
  CHECK_FALSE(nn::TransformerClassifier(config).s_z.defined());
}

TEST_CASE("the amount of padding does not change the logits") {
  for (const auto& [pooling, pooling_name] : nn::EnumNames<nn::Pooling>::values)
    for (const auto& [positions, positions_name] : nn::EnumNames<nn::Positions>::values) {
      INFO(pooling_name << ", " << positions_name);
      manual_seed(1);
      nn::ClassifierConfig config = small();
      config.pooling = pooling;
      config.encoder.positions = positions;
      nn::TransformerClassifier model(config);
      model.to(float64).eval();
      const auto [tokens, none] = padded_to(4);
      const Tensor expected = model(tokens);
      CHECK(expected.shape() == Shape{1, 3});
      for (const std::int64_t length : {4, 5, 10}) {
        const auto [longer, mask] = padded_to(length);
        CHECK(allclose(model(longer, mask), expected, {1e-10, 1e-12}));
        // Nor does it matter what stands there.
        const Tensor junk = where(mask, full_like(longer, 5.0), longer);
        CHECK(allclose(model(junk, mask), expected, {1e-10, 1e-12}));
      }
    }
}

TEST_CASE("every parameter of every variant gets a gradient") {
  for (const auto& [placement, name] : nn::EnumNames<nn::NormPlacement>::values)
    for (const bool gated : {false, true}) {
      INFO(name << (gated ? ", swiglu" : ", gelu"));
      manual_seed(2);
      nn::ClassifierConfig config = small();
      config.bigram_buckets = 16;
      config.embedding_dropout = 0.1;
      config.head_dropout = 0.1;
      config.pooling = nn::Pooling::mean_max;
      config.encoder.placement = placement;
      config.encoder.positions = gated ? nn::Positions::rope : nn::Positions::learned;
      config.encoder.activation = gated ? nn::Activation::swiglu : nn::Activation::gelu;
      config.encoder.qk_norm = gated ? nn::NormKind::rms_norm : nn::NormKind::none;
      nn::TransformerClassifier model(config);
      const Tensor tokens = randint(1, 20, {4, 10});
      const Tensor bigrams = randint(1, 16, {4, 10});
      const Tensor mask = zeros({4, 10}, {.dtype = bool_});
      const Tensor loss = cross_entropy(model(tokens, mask, bigrams), tensor({0, 1, 2, 0}));
      loss.backward();
      for (const auto& entry : model.named_parameters()) {
        INFO(entry.name);
        REQUIRE(entry.tensor.grad().defined());
        // The bias of keys moves all scores of a query alike: softmax does not see it. It does with
        // QK-norm.
        if (entry.name.find("k_proj.bias") != std::string::npos && !gated) continue;
        CHECK(entry.tensor.grad().abs().sum().item() > 0.0);
      }
    }
}

TEST_CASE("dropout in training, none in evaluation") {
  manual_seed(3);
  nn::TransformerClassifier model(small());
  const auto [tokens, mask] = padded_to(6);
  CHECK_FALSE(static_cast<bool>(
      test::bitwise_equal(model(tokens, mask).detach(), model(tokens, mask).detach())));
  model.eval();
  CHECK(test::bitwise_equal(model(tokens, mask).detach(), model(tokens, mask).detach()));
}

TEST_CASE("the same seed makes the same model") {
  const auto make = [](std::uint64_t seed) {
    manual_seed(seed);
    return std::make_unique<nn::TransformerClassifier>(small());
  };
  const auto a = make(4), b = make(4), c = make(5);
  for (const auto& [name, tensor] : a->state_dict())
    CHECK(test::bitwise_equal(tensor, b->state_dict().at(name)));
  const char* name = "encoder.layers.0.self_attn.q_proj.weight";
  CHECK_FALSE(
      static_cast<bool>(test::bitwise_equal(a->state_dict().at(name), c->state_dict().at(name))));
}

TEST_CASE("the padding rows are zero, embeddings have the configured spread") {
  manual_seed(5);
  nn::ClassifierConfig config = small();
  config.vocab_size = 2000;
  config.bigram_buckets = 2000;
  nn::TransformerClassifier model(config);
  for (const Tensor& table : {model.token_embedding.weight, model.bigram_embedding->weight}) {
    CHECK(table[0].abs().sum().item() == 0.0);
    CHECK(table.square().mean().item() == Approx(0.02 * 0.02).epsilon(0.05));
  }
}

TEST_CASE("a tiny classifier learns to tell two words apart") {
  manual_seed(6);
  nn::ClassifierConfig config = small();
  config.num_classes = 2;
  config.encoder.dropout = 0.0;
  nn::TransformerClassifier model(config);
  const Tensor tokens = tensor({{1, 5, 3}, {1, 6, 3}, {5, 2, 0}, {6, 2, 0}});
  const Tensor labels = tensor({0, 1, 0, 1});
  const Tensor mask = tokens == 0.0;
  double first = 0.0, last = 0.0;
  for (int step = 0; step < 60; ++step) {
    const Tensor loss = cross_entropy(model(tokens, mask), labels);
    (step == 0 ? first : last) = loss.item();
    model.zero_grad();
    loss.backward();
    NoGradGuard no_grad;
    for (const Tensor& parameter : model.parameters()) parameter.add_(parameter.grad(), -0.3);
  }
  CHECK(first > 0.5);
  CHECK(last < 0.05);
}

TEST_CASE("impossible configurations and inputs are refused with the fields named") {
  using Catch::Contains;
  const auto make = [](auto change) {
    nn::ClassifierConfig config = small();
    change(config);
    nn::TransformerClassifier{config};
  };
  CHECK_THROWS_WITH(make([](auto& c) { c.vocab_size = 0; }), Contains("vocab_size = 0"));
  CHECK_THROWS_WITH(make([](auto& c) { c.padding_idx = 20; }), Contains("padding_idx = 20"));
  CHECK_THROWS_WITH(make([](auto& c) { c.encoder.num_heads = 3; }), Contains("num_heads = 3"));
  CHECK_THROWS_WITH(make([](auto& c) { c.head_dropout = -0.1; }), Contains("head_dropout"));
  CHECK_THROWS_WITH(make([](auto& c) { c.bigram_buckets = -1; }), Contains("bigram_buckets"));

  nn::ClassifierConfig config = small();
  config.encoder.positions = nn::Positions::learned;
  nn::TransformerClassifier model(config);
  CHECK_THROWS_AS(model(tensor({1, 2})), ShapeError);
  CHECK_THROWS_WITH(model(ones({1, 11}, {.dtype = int64})), Contains("max_length = 10"));
  CHECK_THROWS_AS(model(tensor({{20}})), IndexError);
  CHECK_THROWS_WITH(model(tensor({{1}}), Tensor(), tensor({{1}})), Contains("bigram_buckets = 0"));
}

TEST_CASE("training steps take no fresh page once they are warm") {
  // One thread: which of several takes which scratch differs from step to step.
  struct OneThread {
    const int before = get_num_threads();
    OneThread() { set_num_threads(1); }
    ~OneThread() { set_num_threads(before); }
  } const one_thread;
  manual_seed(1);
  nn::TransformerClassifier model({.vocab_size = 50,
                                   .max_length = 128,
                                   .encoder = {.d_model = 256, .num_heads = 8, .num_layers = 1}});
  optim::AdamW optimizer(model.parameters(), {.lr = 1e-3});
  const Tensor tokens = randint(1, 50, {16, 128}), labels = randint(0, 2, {16});
  const auto step = [&] {
    optimizer.zero_grad();
    cross_entropy(model(tokens), labels).backward();
    optimizer.step();
  };
  for (int i = 0; i < 10; ++i) step();
  if (memory_stats().cache_hits == 0) return;  // this process keeps no memory (NORMA_NO_CACHE)
  // The best of a few: the system moves pages now and then, whoever runs.
  long fewest = std::numeric_limits<long>::max();
  for (int i = 0; i < 5; ++i) {
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    step();
    getrusage(RUSAGE_SELF, &after);
    fewest = std::min(fewest, after.ru_minflt - before.ru_minflt);
  }
  CHECK(fewest == 0);
}
