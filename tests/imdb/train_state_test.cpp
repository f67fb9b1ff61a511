#include "imdb/train_state.h"

#include "../support/catch.h"
#include "norma/core/error.h"

using namespace imdb;
using Catch::Contains;

TEST_CASE("the state of a run reads back exactly") {
  TrainState state;
  state.step = 12;
  state.epoch = 1;
  state.batch = 3;
  state.tokens = 123456789012;
  state.train_seconds = 0.1 + 0.2;
  state.total_seconds = 0.1 + 0.7;
  state.data_hash = 0xFFFFFFFFFFFFFFF7u;
  state.tokenizer_hash = 0xFFFFFFFFFFFFFFF5u;
  state.loss_sum = 1e-17;
  state.correct = 7;
  state.logit_shift = -1.0 / 3;
  state.rng_seed = 0xFFFFFFFFFFFFFFFFu;
  state.rng_offset = 0x8000000000000001u;
  state.data_name = "a \"name\" \xC3\xA9";
  state.steps = {{1, 0.69314718055994531, 0.5, 1e-5, 3.0 / 7}, {2, 0.5, 0.75, 2e-5, 1.0 / 3}};
  state.epochs = {{1, 9, 0.6, 0.7, 0.5, 0.8, 12.25}};
  const auto text = to_json(state);
  const auto read = train_state_from_json(text, "state.json");
  CHECK(to_json(read) == text);
  CHECK(read.rng_offset == state.rng_offset);
  CHECK(read.train_seconds == state.train_seconds);
  CHECK(read.data_hash == state.data_hash);
  CHECK(read.tokenizer_hash == state.tokenizer_hash);
  CHECK(read.logit_shift == state.logit_shift);
  REQUIRE(read.steps.size() == 2);
  CHECK(read.steps[0].loss == state.steps[0].loss);
  CHECK(read.steps[1].grad_norm == state.steps[1].grad_norm);
  CHECK(read.epochs[0].dev_accuracy == 0.8);
}

TEST_CASE("what is not a state is refused with the file's name") {
  for (const char* text :
       {"", "{", "[]", "{}", "{\"format\": 3}", "{\"format\":\"norma imdb checkpoint\"}"})
    CHECK_THROWS_AS(train_state_from_json(text, "x/state.json"), norma::FileError);
  CHECK_THROWS_WITH(train_state_from_json("{}", "x/state.json"), Contains("x/state.json"));
  auto text = to_json(TrainState{});
  text.replace(text.find("\"version\":3"), 11, "\"version\":9");
  CHECK_THROWS_WITH(train_state_from_json(text, "s"), Contains("version must be 3; got 9"));
  text = to_json(TrainState{});
  text.resize(text.size() / 2);
  CHECK_THROWS_WITH(train_state_from_json(text, "s"), Contains("damaged"));
}
