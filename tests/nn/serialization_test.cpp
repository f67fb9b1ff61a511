// Modules through safetensors files.
#include "norma/nn/serialization.h"

#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "norma/nn/classifier.h"
#include "support/catch.h"
#include "support/compare.h"
#include "support/temporary_folder.h"

using namespace norma;

TEST_CASE("save and load give back every bit") {
  test::TemporaryFolder folder;
  const std::string path = folder.path() / "model.safetensors";
  const nn::ClassifierConfig config{.vocab_size = 10,
                                    .encoder = {.d_model = 8, .num_heads = 2, .num_layers = 2}};
  manual_seed(1);
  nn::TransformerClassifier source(config);
  nn::TransformerClassifier target(config);
  nn::save(source, path);
  CHECK(nn::load(target, path).ok());
  for (const auto& [name, tensor] : source.state_dict()) {
    INFO(name);
    CHECK(test::bitwise_equal(target.state_dict().at(name), tensor));
  }
}

TEST_CASE("a checkpoint of another model is refused, a partial one is reported") {
  test::TemporaryFolder folder;
  const std::string path = folder.path() / "model.safetensors";
  nn::Linear small(2, 3), large(2, 4), plain(2, 3, false);
  nn::save(small, path);
  CHECK_THROWS_AS(nn::load(large, path), ValueError);
  CHECK_THROWS_AS(nn::load(plain, path), ValueError);
  CHECK(nn::load(plain, path, false).unexpected == std::vector<std::string>{"bias"});
  CHECK_THROWS_AS(nn::load(small, folder.path() / "missing.safetensors"), FileError);
}
