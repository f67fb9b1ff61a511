// lm: the tokenizer, the rows, and the program as a user runs it.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "imdb/files.h"
#include "imdb/make_archive.h"
#include "lm/config.h"
#include "lm/report.h"
#include "lm/text_data.h"
#include "support/catch.h"
#include "support/temporary_folder.h"

namespace norma::test {
namespace {

namespace fs = std::filesystem;

/// Sentences of which each word says much about the next.
std::string toy_text(int sentences) {
  const char* who[] = {"The cat", "A dog", "My mouse", "One bird"};
  const char* what[] = {"sat on", "looked at", "ran from"};
  const char* where[] = {"the mat", "the old house", "a tree"};
  std::string text;
  unsigned state = 7;
  const auto next = [&](unsigned n) {
    return (state = state * 1664525u + 1013904223u) / 65536 % n;
  };
  for (int i = 0; i < sentences; ++i) {
    text += who[next(4)];
    text += ' ';
    text += what[next(3)];
    text += ' ';
    text += where[next(3)];
    text += ".\n";
  }
  return text;
}

struct ProgramResult {
  int code;
  std::string out, err;
};

ProgramResult run_lm(const fs::path& folder, const std::string& arguments) {
  const fs::path out = folder / "stdout.txt", err = folder / "stderr.txt";
  const std::string command = "cd '" + folder.string() +
                              "' && OMP_WAIT_POLICY=passive '" LM_PROGRAM "' " + arguments + " >'" +
                              out.string() + "' 2>'" + err.string() + "' </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, imdb::read_file(out),
          imdb::read_file(err)};
}

double figure(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + name.size()));
}

constexpr char kSmall[] =
    "train --data toy.txt --vocab-size 320 --context 32 --layers 1 --d-model 32 --heads 2 "
    "--kv-heads 1"
    " --d-ff 48 --batch-size 8 --threads 1 --warmup-steps 5 --lr 1e-2 --dropout 0.1";

}  // namespace

TEST_CASE("a text comes back from its tokens as it was") {
  const auto tokenizer = lm::Tokenizer::train({toy_text(200)}, 320);
  CHECK(tokenizer->vocab_size() <= 320);
  const std::string text = "The cat  sat\n\n on\t\u00e9t\u00e9 \u4e2d <br /> ZQ!  ";
  CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
  // Words are encoded once each, which must not change the pieces.
  const auto all = tokenizer->encode_all({text, "A dog"});
  CHECK(tokenizer->decode(all) == text + "A dog");
  CHECK(all.front() == lm::Tokenizer::bos_id);
  CHECK(all.back() == lm::Tokenizer::eos_id);
  CHECK(tokenizer->encode("The cat sat on the mat.").size() < 12);  // of 23 characters
  const lm::Tokenizer copy(tokenizer->model());
  CHECK(copy.encode(text) == tokenizer->encode(text));
}

TEST_CASE("rows of a stream predict every token once") {
  lm::TokenIds stream(32);
  for (std::size_t i = 0; i < stream.size(); ++i) stream[i] = static_cast<std::int64_t>(i);
  const lm::Rows rows(stream, 5, 3);  // 1 + 7 * 4 tokens; three are left out
  CHECK(rows.rows() == 7);
  CHECK(rows.batches() == 3);
  CHECK(rows.batch(rows.in_order(), 2).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{24, 25, 26, 27, 28});
  const auto order = rows.shuffled(1, 0);
  CHECK(order != rows.shuffled(1, 1));
  CHECK(order == rows.shuffled(1, 0));
  std::vector<int> predicted(32, 0);
  for (std::int64_t b = 0; b < 3; ++b) {
    const auto values = rows.batch(order, b).to_vector<std::int64_t>();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (i % 5 > 0) ++predicted[static_cast<std::size_t>(values[i])];
  }
  for (std::size_t i = 0; i < 32; ++i) CHECK(predicted[i] == (i > 0 && i < 29 ? 1 : 0));
}

TEST_CASE("reviews without a label are learned from, but for those that are labelled ones") {
  const TemporaryFolder folder;
  auto files = imdb_test::small_dataset(4);
  files.push_back({"aclImdb/train/unsup/11_0.txt", "Nobody said<br />how good."});
  files.push_back({"aclImdb/train/unsup/2_0.txt", "Nor how bad."});
  files.push_back({"aclImdb/train/unsup/0_0.txt", "A pos review, number 2 of test."});
  files.push_back({"aclImdb/train/unsup/1_0.txt", "A neg review, number 1 of train."});
  const std::string path =
      imdb_test::write_file(folder.path(), "data.bin", imdb_test::make_archive(files)).string();
  const lm::Texts labelled = lm::read_texts(path, "", 0.5);
  CHECK(labelled.train.size() + labelled.dev.size() == 8);
  lm::Texts texts = lm::read_texts(path, path, 0.5);
  CHECK(texts.dev == labelled.dev);
  REQUIRE(texts.train.size() == labelled.train.size() + 2);
  for (const auto* side : {&texts.train, &texts.dev})
    for (const std::string& text : *side) CHECK(text.find("of test") == std::string::npos);
  std::sort(texts.train.begin(), texts.train.end());
  CHECK(texts.train[texts.train.size() - 2] == "Nobody said\nhow good.");
  CHECK(texts.train.back() == "Nor how bad.");
  const auto book = imdb_test::write_file(folder.path(), "book.txt", toy_text(50)).string();
  CHECK_THROWS_AS(lm::read_texts(book, path, 0.5), ValueError);
  CHECK(lm::read_whole(book) == std::vector<std::string>{toy_text(50)});
  CHECK(lm::read_whole(path).size() == 8);
}

TEST_CASE("presets are MiniMind's models, and config.toml holds every option") {
  for (const std::string& name : lm::preset_names()) {
    const lm::Config config = lm::make_preset(name);
    const TemporaryFolder folder;
    imdb::write_file_atomic(folder.path() / "config.toml", lm::to_toml(config));
    CHECK(lm::read_config(folder.path() / "config.toml") == config);
  }
  const nn::CausalLMConfig v3 = lm::model_config(lm::make_preset("minimind-3"), 6400);
  CHECK(v3.decoder.d_ff == nn::minimind_3().decoder.d_ff);
  CHECK(v3.decoder.qk_norm == nn::NormKind::rms_norm);
  CHECK(lm::bits_per_byte(std::log(2.0), 10, 40.0) == Approx(0.25));
}

TEST_CASE("lm learns a toy text, resumes bit for bit, writes and measures") {
  const TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  std::ofstream(folder / "toy.txt") << toy_text(900);

  const auto whole = run_lm(folder, std::string(kSmall) + " --epochs 3 --out whole");
  INFO(whole.err);
  REQUIRE(whole.code == 0);
  const double loss = figure(whole.out, "dev loss");
  const double unigram =
      figure(imdb::read_file(folder / "whole/metrics.json"), "\"unigram_loss\": ");
  CHECK(loss < 0.6 * unigram);
  CHECK(fs::exists(folder / "whole/report.html"));

  REQUIRE(run_lm(folder, std::string(kSmall) + " --epochs 3 --out part --stop-after 9").code == 0);
  const auto rest = run_lm(folder, "train --resume part");
  INFO(rest.err);
  REQUIRE(rest.code == 0);
  CHECK(rest.out == whole.out);
  const auto last = [&](const char* run) {
    fs::path newest;
    for (const auto& entry : fs::directory_iterator(folder / run / "checkpoints"))
      newest = std::max(newest, entry.path());
    return imdb::read_file(newest / "model.safetensors");
  };
  CHECK(last("whole") == last("part"));

  const auto evaluated = run_lm(folder, "eval --model whole");
  CHECK(figure(evaluated.out, "loss") == Approx(loss).margin(1e-4));
  CHECK(figure(evaluated.out, "perplexity") == Approx(std::exp(loss)).epsilon(0.01));

  const std::string sample = "sample --model part --max-tokens 60 --seed 4 --top-k 20 \"The cat\"";
  const auto text = run_lm(folder, sample);
  CHECK(text.code == 0);
  CHECK(text.out.starts_with("The cat"));
  CHECK(text.out.size() > 30);
  CHECK(run_lm(folder, sample + " --no-cache").out == text.out);
}

TEST_CASE("bad input of lm is one line and exit code 2") {
  const TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  std::ofstream(folder / "toy.txt") << "short";
  for (const char* arguments : {"train --data nothing.txt", "train --data toy.txt --vocab-size 300",
                                "train --heads 3", "train --lr fast", "train --norm nonsense",
                                "sample", "eval --model toy.txt", "train --preset huge", "paint"}) {
    const auto result = run_lm(folder, arguments);
    INFO(arguments << ": " << result.err);
    CHECK(result.code == 2);
    CHECK(result.err.find("lm: error: ") != std::string::npos);
    CHECK(result.out.empty());
    CHECK(!fs::exists(folder / "runs/lm/lm-tiny-seed1"));
  }
}

}  // namespace norma::test
