// Preset < what a missing --data makes of it < file < flags.
#include "../support/catch.h"
#include "imdb/commands.h"
#include "imdb/files.h"
#include "norma/core/error.h"
#include "support.h"

using namespace imdb;
using Catch::Contains;

namespace {
void add_flag(TrainArguments& arguments, const char* key, const char* value) {
  arguments.flags.emplace_back(find_config_field(key), value);
}
}  // namespace

TEST_CASE("flags win over the file, the file over the preset") {
  TemporaryFolder folder;
  const auto file = folder.path / "my.toml";
  write_file_atomic(file,
                    "[run]\npreset = \"imdb-nano\"\ndata = \"reviews.tar.gz\"\n"
                    "[train]\nepochs = 9\nlr = 0.5\n");
  TrainArguments arguments;
  arguments.config_file = file.string();
  add_flag(arguments, "lr", "0.25");
  const TrainConfig config = resolve_config(arguments);
  TrainConfig expected = make_preset("imdb-nano");
  expected.data = "reviews.tar.gz";
  expected.epochs = 9;
  expected.lr = 0.25;
  CHECK(config == expected);
}

TEST_CASE("a flag may choose another preset than the file") {
  TemporaryFolder folder;
  const auto file = folder.path / "my.toml";
  write_file_atomic(file, "[run]\npreset = \"imdb-nano\"\n[train]\nepochs = 9\n");
  TrainArguments arguments;
  arguments.config_file = file.string();
  add_flag(arguments, "preset", "imdb-seed");
  add_flag(arguments, "data", "x");
  const TrainConfig config = resolve_config(arguments);
  CHECK(config.preset == "imdb-seed");
  CHECK(config.layers == 6);
  CHECK(config.epochs == 9);
}

TEST_CASE("without data the sample's settings apply, and only then") {
  TrainArguments arguments;
  TrainConfig sample;
  apply_sample_variant(sample);
  CHECK(resolve_config(arguments) == sample);
  CHECK_FALSE(sample == TrainConfig{});
  add_flag(arguments, "epochs", "3");
  CHECK(resolve_config(arguments).epochs == 3);
  add_flag(arguments, "data", "x.tar.gz");
  TrainConfig expected;
  expected.data = "x.tar.gz";
  expected.epochs = 3;
  CHECK(resolve_config(arguments) == expected);
}

TEST_CASE("the flag --bigram takes its own shape, which flags may still change") {
  TrainArguments arguments;
  arguments.bigram = true;
  add_flag(arguments, "data", "x");
  add_flag(arguments, "layers", "3");
  const TrainConfig config = resolve_config(arguments);
  CHECK(config.bigram_buckets == 262144);
  CHECK(config.d_model == 64);
  CHECK(config.layers == 3);
}

TEST_CASE("errors name the flag, and contradictions are found at the end") {
  TrainArguments arguments;
  add_flag(arguments, "dropout", "1.5");
  CHECK_THROWS_WITH(resolve_config(arguments),
                    Contains("flag --dropout") && Contains("must lie in"));
  TrainArguments heads;
  add_flag(heads, "d_model", "100");
  add_flag(heads, "heads", "3");
  CHECK_THROWS_WITH(resolve_config(heads), Contains("heads must divide d_model"));
}

TEST_CASE("a config written by a run gives the same run again") {
  TemporaryFolder folder;
  TrainArguments first;
  first.bigram = true;
  add_flag(first, "data", "x");
  add_flag(first, "seed", "7");
  const TrainConfig config = resolve_config(first);
  const auto file = folder.path / "config.toml";
  write_file_atomic(file, to_toml(config));
  TrainArguments second;
  second.config_file = file.string();
  CHECK(resolve_config(second) == config);
}
