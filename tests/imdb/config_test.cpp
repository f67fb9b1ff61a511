#include "imdb/config.h"

#include <filesystem>

#include "../support/catch.h"
#include "imdb/files.h"
#include "norma/core/error.h"
#include "support.h"

using namespace imdb;
using Catch::Contains;

TEST_CASE("every preset validates and survives config.toml unchanged") {
  for (const auto& name : preset_names()) {
    TrainConfig original = make_preset(name);
    REQUIRE(original.preset == name);
    REQUIRE_NOTHROW(validate(original));
    TrainConfig read = make_preset(name == "imdb-tiny" ? "imdb-seed" : "imdb-tiny");
    const auto keys = apply_toml(read, to_toml(original), "config.toml");
    CHECK(keys.size() == config_fields().size());
    CHECK(read == original);
  }
}

TEST_CASE("config.toml keeps awkward values bit for bit") {
  TrainConfig original;
  original.lr = 0.1 + 0.2;
  original.eps = 1e-30;
  original.clip_norm = 3;  // a whole number must come back as a float
  original.seed = 4294967295;
  original.data = "a \"quoted\" \\ path\twith = # signs, \xC3\xA9.tar.gz";
  original.qk_norm = true;
  TrainConfig read;
  apply_toml(read, to_toml(original), "x.toml");
  CHECK(read == original);
}

TEST_CASE("the table of options names each member once") {
  // A default-constructed config and one that differs in every member must differ in every field.
  for (const auto& field : config_fields()) {
    int same = 0;
    for (const auto& other : config_fields()) same += field.member == other.member;
    CHECK(same == 1);
    CHECK(find_config_field(field.key) == &field);
    CHECK(field.flag().rfind("--", 0) == 0);
    CHECK(field.flag().find('_') == std::string::npos);
    CHECK(std::string(field.help).size() > 5);
  }
}

TEST_CASE("a config file changes what it names and nothing else") {
  TrainConfig config;
  const auto keys =
      apply_toml(config, "[train]\nepochs = 7\nlr = 1\n[model]\nnorm = \"layer_norm\"", "f");
  TrainConfig expected;
  expected.epochs = 7;
  expected.lr = 1.0;
  expected.norm = "layer_norm";
  CHECK(config == expected);
  CHECK(keys.size() == 3);
}

TEST_CASE("errors in a config file name the file, the line and the key") {
  TrainConfig config;
  const auto message = [&](const char* text) -> std::string {
    try {
      apply_toml(config, text, "my.toml");
    } catch (const norma::ValueError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(message("[train]\nepoch = 3"), Contains("my.toml, line 2: train.epoch: unknown key"));
  CHECK_THAT(message("[train]\nbatchSize = 3"), Contains("did you mean batch_size in [train]"));
  CHECK_THAT(message("[model]\nepochs = 3"), Contains("did you mean epochs in [train]"));
  CHECK_THAT(message("[nonsense]\nx = 3"), Contains("nonsense: unknown section"));
  CHECK_THAT(message("epochs = 3"), Contains("unknown section"));
  CHECK_THAT(message("[train]\nepochs = \"3\""), Contains("must be an integer; got a string"));
  CHECK_THAT(message("[train]\nepochs = 2.5"), Contains("must be an integer"));
  CHECK_THAT(message("[train]\nepochs = 0"), Contains("must lie in [1, 1000000]"));
  CHECK_THAT(message("[model]\ndropout = 1.0"), Contains("must lie in [0, "));
  CHECK_THAT(message("[train]\nlr = nan"), Contains("must lie in"));
  CHECK_THAT(message("[model]\nnorm = \"batch\""), Contains("one of none, layer_norm, "));
  CHECK_THAT(message("[train\nlr = 3"), Contains("my.toml, line 1"));
  CHECK_THROWS_AS(apply_toml_file(config, "/nonexistent/file.toml"), norma::FileError);
}

TEST_CASE("the configuration of a checkpoint must be whole") {
  TemporaryFolder folder;
  const auto path = folder.path / "config.toml";
  const TrainConfig original = make_preset("imdb-seed");
  const std::string text = to_toml(original);
  write_file_atomic(path, text);
  CHECK(read_complete_config(path) == original);

  write_file_atomic(path, "");
  CHECK_THROWS_WITH(read_complete_config(path),
                    Contains("config.toml must name every option; it lacks run.preset, run.data") &&
                        Contains("train.checkpoint_every"));
  write_file_atomic(path, text.substr(0, text.find("lr = ")));
  CHECK_THROWS_WITH(read_complete_config(path),
                    Contains("it lacks train.lr, train.beta1") && !Contains("train.epochs"));
  CHECK_THROWS_AS(read_complete_config(folder.path / "absent.toml"), norma::FileError);
}

TEST_CASE("options that contradict each other are refused") {
  const auto refuses = [](auto change, const char* text) {
    TrainConfig config;
    change(config);
    CHECK_THROWS_WITH(validate(config), Contains(text));
  };
  refuses([](auto& c) { c.heads = 3; }, "heads must divide d_model");
  refuses([](auto& c) { c.kv_heads = 3; }, "kv_heads must divide heads");
  refuses([](auto& c) { c.d_model = 6; }, "must be even");
  refuses([](auto& c) { c.head_length = 400; }, "head_length must not exceed max_length");
  refuses(
      [](auto& c) {
        c.pooling = "cls";
        c.head_length = c.max_length;
      },
      "must be less than max_length");
  refuses([](auto& c) { c.norm = "none"; }, "both be none or neither");
  refuses([](auto& c) { c.placement = "none"; }, "both be none or neither");
}

TEST_CASE("presets: unknown names and the bigram variant") {
  CHECK_THROWS_WITH(make_preset("imdb-huge"), Contains("imdb-nano, imdb-tiny, imdb-seed"));
  TrainConfig bigram;
  apply_bigram_variant(bigram);
  CHECK(bigram.bigram_buckets == 262144);
  CHECK(bigram.d_model == 64);
  CHECK(bigram.max_length == 512);
  CHECK_NOTHROW(validate(bigram));
  TrainConfig nano = make_preset("imdb-nano");
  CHECK_THROWS_WITH(apply_bigram_variant(nano), Contains("variant of imdb-tiny"));
}
