// CausalLM: MiniMind's two shapes, PyTorch's values (tests/golden/make_lm.py), decoding with a
// cache.
#include "support/catch.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/nn/generate.h"
#include "norma/nn/serialization.h"
#include "norma/nn/weight_norm.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduction.h"
#include "norma/optim/weight_decay_groups.h"

#include <cmath>
#include <map>

namespace norma::test {
namespace {

/// The models of make_lm.py: MiniMind's two in small.
nn::CausalLMConfig small_config(bool v3) {
  nn::CausalLMConfig config = v3 ? nn::minimind_3() : nn::minimind_v2();
  config.vocab_size = 29;
  config.decoder.d_model = 16;
  config.decoder.num_layers = 2;
  config.decoder.num_heads = 4;
  config.decoder.num_kv_heads = 2;
  config.decoder.d_ff = 24;
  return config;
}

std::int64_t count_norms(nn::Module& model) {
  std::int64_t count = 0;
  for (nn::Module* module : model.modules()) count += dynamic_cast<nn::Norm*>(module) != nullptr;
  return count;
}

}  // namespace

TEST_CASE("MiniMind's models have its norms, parameters and names") {
  nn::CausalLM v2(nn::minimind_v2());
  CHECK(count_norms(v2) == 17);
  CHECK(v2.num_parameters() == 25'829'888);
  nn::CausalLM v3(nn::minimind_3());
  CHECK(count_norms(v3) == 33);
  CHECK(v3.num_parameters() == 63'912'192);
  const nn::StateDict state = v3.state_dict();
  CHECK(state.size() == 8 * 11 + 3);
  CHECK(state.at("model.layers.7.self_attn.k_norm.weight").shape() == Shape{96});
  CHECK(state.at("model.layers.0.self_attn.k_proj.weight").shape() == Shape{384, 768});
  for (const char* name :
       {"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight",
        "model.layers.0.input_layernorm.weight", "model.layers.0.post_attention_layernorm.weight",
        "model.layers.0.mlp.gate_proj.weight"})
    CHECK(state.contains(name));
}

TEST_CASE("CausalLM of nGPT: logits of unit vectors times learned s_z, nothing decays") {
  nn::CausalLMConfig config = small_config(true);
  config.decoder.placement = nn::NormPlacement::ngpt;
  config.decoder.qk_norm = nn::NormKind::none;
  config.tie_word_embeddings = false;
  nn::CausalLM model(config);
  nn::normalize_matrices_(model);
  const Tensor tokens = tensor({{3, 5, 1}});
  CHECK(allclose(model.s_z, full({29}, 0.25)));
  const Tensor logits = model(tokens).detach();
  // Unit states and unit rows of lm_head: s_z stands for 1, so these are cosines.
  CHECK(allclose(logits, model.lm_head(model.model(tokens))));
  CHECK(amax(abs(logits)).item() <= 1.0 + 1e-5);
  {
    const NoGradGuard no_grad;
    model.s_z.mul_(3.0);
  }
  CHECK(allclose(model(tokens), 3.0 * logits));
  CHECK(optim::weight_decay_groups(model, 0.1).groups[0].params.empty());
}

TEST_CASE("a small MiniMind equals PyTorch's: logits, loss, every gradient", "[golden]") {
  const auto& tensors = golden("lm.safetensors");
  for (const bool v3 : {false, true})
    for (const DType dtype : {float64, float32}) {
      const std::string name = v3 ? "v3" : "v2";
      INFO(name << " " << dtype_name(dtype));
      nn::CausalLM model(small_config(v3));
      model.to(dtype);
      for (const nn::NamedParameter& parameter : model.named_parameters()) {
        const NoGradGuard no_grad;
        parameter.tensor.copy_(tensors.at(name + "/state/" + parameter.name).to(dtype));
      }
      const Tensor tokens = tensors.at(name + "/tokens");
      const Tensor logits = model(tokens);
      CHECK(equals_golden(logits.detach(), tensors.at(name + "/logits"), dtype));
      const Tensor loss = nn::next_token_loss(logits, tokens);
      CHECK(equals_golden(loss.detach(), tensors.at(name + "/loss"), dtype));
      loss.backward();
      for (const nn::NamedParameter& parameter : model.named_parameters()) {
        INFO(parameter.name);
        CHECK(equals_golden(parameter.tensor.grad(), tensors.at(name + "/grad/" + parameter.name),
                            dtype));
      }
    }
}

TEST_CASE("a checkpoint that PyTorch wrote, with the tied weight under one name, is loaded",
          "[golden]") {
  nn::CausalLM model(small_config(true));
  CHECK(nn::load(model, NORMA_TEST_DATA "/lm_checkpoint.safetensors").ok());
  const auto& tensors = golden("lm.safetensors");
  const NoGradGuard no_grad;
  CHECK(allclose(model(tensors.at("v3/tokens")), tensors.at("v3/logits"), {0.0, 1e-4}));
  CHECK(model.lm_head.weight.is_same(model.model.embed_tokens.weight));

  const TemporaryFolder folder;
  const std::string path = (folder.path() / "model.safetensors").string();
  nn::save(model, path);
  nn::CausalLM copy(small_config(true));
  nn::load(copy, path);
  CHECK(allclose(copy.lm_head.weight, model.lm_head.weight, {0.0, 0.0}));
}

TEST_CASE("decoding with a key-value cache equals the whole forward") {
  manual_seed(3);
  nn::CausalLM model(small_config(true));
  model.eval();
  const NoGradGuard no_grad;
  for (const nn::NamedParameter& parameter : model.named_parameters())
    parameter.tensor.copy_(randn(parameter.tensor.shape()) * 0.3);
  // Past the room that a cache starts with, and in pieces of one token and of several.
  const Tensor tokens = randint(0, 29, {2, 150});
  const Tensor whole = model(tokens);
  nn::DecoderCache cache;
  std::int64_t done = 0;
  for (const std::int64_t piece : {7, 1, 1, 40, 30, 1, 60, 9, 1}) {
    const Tensor logits = model(tokens.narrow(1, done, piece), &cache);
    INFO("from " << done);
    CHECK(allclose(logits, whole.narrow(1, done, piece), {1e-5, 1e-5}));
    done += piece;
  }
  CHECK(done == 150);
  CHECK(cache.length() == 150);
  CHECK_THROWS_AS(model(tokens.narrow(0, 0, 1), &cache), ShapeError);
  const EnableGradGuard grad;
  CHECK_THROWS_AS(model(tokens, &cache), AutogradError);
}

TEST_CASE("sampling keeps what temperature, top_k and top_p leave, in these proportions") {
  const Tensor logits = tensor({1.0, 3.0, 2.0, 0.0});  // p = 0.087, 0.644, 0.237, 0.032
  const auto shares = [&](const nn::SamplingOptions& options) {
    std::map<std::int64_t, double> result;
    for (int i = 0; i < 10000; ++i)
      result[nn::sample_token(logits, options, (i + 0.5) / 10000)] += 1e-4;
    return result;
  };
  const auto near = [](double a, double b) { return std::abs(a - b) < 2e-4; };
  const auto all = shares({});
  CHECK(all.size() == 4);
  CHECK(near(all.at(1), 0.6439));
  CHECK(near(all.at(3), 0.0321));
  const auto two = shares({.top_k = 2});
  CHECK(two.size() == 2);
  CHECK(near(two.at(1), 1 / (1 + std::exp(-1.0))));
  CHECK(near(shares({.temperature = 0.5, .top_k = 2}).at(1), 1 / (1 + std::exp(-2.0))));
  CHECK(shares({.top_p = 0.6}).size() == 1);
  CHECK(shares({.top_p = 0.65}).size() == 2);
  CHECK(shares({.temperature = 0.0}).contains(1));
  CHECK(shares({.temperature = 0.0}).size() == 1);
  CHECK_THROWS_AS(nn::sample_token(logits, {.top_p = 0.0}, 0.5), ValueError);
  CHECK_THROWS_AS(nn::sample_token(logits, {.temperature = -1.0}, 0.5), ValueError);
}

TEST_CASE("generate repeats with its seed, with and without the cache, and ends at eos") {
  manual_seed(5);
  nn::CausalLM model(small_config(false));
  const std::vector<std::int64_t> prompt{1, 2, 3};
  nn::GenerateOptions options{.max_new_tokens = 80, .seed = 9};
  const auto text = nn::generate(model, prompt, options);
  CHECK(text.size() == 80);
  CHECK(model.is_training());
  options.use_cache = false;
  CHECK(nn::generate(model, prompt, options) == text);
  options.seed = 10;
  CHECK(nn::generate(model, prompt, options) != text);
  options.seed = 9;
  options.eos_token_id = text[20];
  const auto ended = nn::generate(model, prompt, options);
  CHECK(ended.size() <= 20);
  CHECK(std::equal(ended.begin(), ended.end(), text.begin()));
  CHECK_THROWS_AS(nn::generate(model, {}), ValueError);
}

}  // namespace norma::test
