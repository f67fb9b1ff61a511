// Files, metrics, progress, interrupts: what surrounds the training loop.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include <norma/norma.h>

#include "../support/catch.h"
#include "imdb/files.h"
#include "imdb/interrupt.h"
#include "imdb/metrics.h"
#include "imdb/progress.h"
#include "support.h"

using namespace imdb;
using Catch::Contains;

namespace {

// Columns of a line that may hold block characters (UTF-8 continuation bytes take none).
int columns(const std::string& line) {
  int count = 0;
  for (const char c : line) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

// The nearest thing to a full disk that needs no disk: files may not grow past `bytes`.
struct FileSizeLimit {
  rlimit former{};
  explicit FileSizeLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &former);
    const rlimit limit{bytes, former.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &former); }
};

}  // namespace

TEST_CASE("an atomic write that fails leaves the old file and nothing else") {
  TemporaryFolder folder;
  const auto path = folder.path / "file.txt";
  write_file_atomic(path, "old");
  CHECK(read_file(path) == "old");
  {
    FileSizeLimit limit(100);
    CHECK_THROWS_AS(write_file_atomic(path, std::string(1000, 'x')), WriteError);
    CHECK_THROWS_WITH(write_file_atomic(path, std::string(1000, 'x')), Contains("file.txt"));
  }
  CHECK(read_file(path) == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
  write_file_atomic(path, "new");
  CHECK(read_file(path) == "new");
  CHECK_THROWS_AS(write_file_atomic(folder.path / "no" / "such" / "folder", "x"), WriteError);
  CHECK_THROWS_AS(read_file(folder.path / "absent"), norma::FileError);
  CHECK_THROWS_AS(read_file(folder.path), norma::FileError);
  CHECK_THROWS_AS(make_directories(path / "below a file"), WriteError);
}

TEST_CASE("metrics.json holds what programs look for") {
  Metrics metrics;
  metrics.preset = "imdb-tiny";
  metrics.seed = 3;
  metrics.device = "cpu";
  metrics.threads = 2;
  metrics.dev_accuracy = 0.88125;
  metrics.test_accuracy = 0.88;
  metrics.train_seconds = 12.5;
  metrics.test_loss = std::numeric_limits<double>::quiet_NaN();
  metrics.epochs.push_back({1, 100, 0.5, 0.75, 0.4, 0.88125, 12.5});
  const auto json = nlohmann::json::parse(to_json(metrics));
  CHECK(json["preset"] == "imdb-tiny");
  CHECK(json["seed"] == 3);
  CHECK(json["threads"] == 2);
  CHECK(json["dev_accuracy"] == 0.88125);
  CHECK(json["test_accuracy"] == 0.88);
  CHECK(json["test_loss"].is_null());
  CHECK(json["epochs"] == 1);
  CHECK(json["per_epoch"][0]["train_accuracy"] == 0.75);
  for (const char* key : {"device", "train_seconds", "total_seconds", "tokens_per_second",
                          "peak_memory_bytes", "git_revision", "parameters"})
    CHECK(json.contains(key));
  CHECK(json["version"] == NORMA_VERSION);
  CHECK(!json["git_revision"].get<std::string>().empty());
  CHECK(peak_memory_bytes() > 1 << 20);
  CHECK(available_processors() >= 1);
}

TEST_CASE("progress lines fit the terminal and drop the least important first") {
  const ProgressState state{"epoch 2/4", 50, 200, 0.4321, 0.871, 52100, 247};
  for (int width : {20, 40, 60, 80, 120, 200})
    for (bool unicode : {false, true}) {
      const auto line = progress_bar_line(state, width, unicode);
      CHECK(columns(line) < width);
      CHECK_THAT(line, Contains("25 %"));
    }
  const auto wide = progress_bar_line(state, 120, true);
  for (const char* part : {"loss 0.4321", "acc 87.1 %", "52.1k tokens/s", "ETA 4:07", "epoch 2/4"})
    CHECK_THAT(wide, Contains(part));
  const auto narrow = progress_bar_line(state, 45, true);
  CHECK_THAT(narrow, Contains("loss"));
  CHECK_THAT(narrow, !Contains("tokens/s"));
  CHECK_THAT(progress_plain_line(state), Contains("epoch 2/4  50/200  loss 0.4321"));
  CHECK(format_duration(3750) == "1:02:30");
  CHECK(format_duration(std::nan("")) == "--:--");
  CHECK(format_count(999.7) == "1.0k");
  CHECK(format_count(1234567) == "1.2M");
}

TEST_CASE("progress that is not on a terminal prints lines without control characters") {
  TemporaryFolder folder;
  const auto path = folder.path / "log";
  std::FILE* file = std::fopen(path.c_str(), "w");
  {
    Progress progress(file, 0.0);
    CHECK_FALSE(progress.is_terminal());
    progress.update({"train", 1, 2});
    progress.update({"train", 2, 2});
    progress.finish();
    progress.message("done");
  }
  std::fclose(file);
  CHECK(read_file(path) == "train  1/2\ntrain  2/2\ndone\n");
}

TEST_CASE("the first interrupt is a request, and the handlers come back") {
  struct sigaction before {
  }, after{};
  ::sigaction(SIGINT, nullptr, &before);
  {
    InterruptGuard guard;
    CHECK_FALSE(guard.requested());
    ::raise(SIGINT);
    CHECK(guard.requested());
  }
  ::sigaction(SIGINT, nullptr, &after);
  CHECK(before.sa_handler == after.sa_handler);
  InterruptGuard fresh;
  CHECK_FALSE(fresh.requested());
}

TEST_CASE("a closed terminal and kill are requests as Ctrl-C is, even when they come twice") {
  for (const int signal : {SIGTERM, SIGHUP}) {
    InterruptGuard guard;
    ::raise(signal);
    CHECK(guard.requested());
    ::raise(signal);  // would end this process
  }
}

TEST_CASE("the second Ctrl-C ends the process") {
  const pid_t child = ::fork();
  if (child == 0) {
    InterruptGuard guard;
    ::raise(SIGTERM);
    ::raise(SIGINT);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGINT);
}

TEST_CASE("nohup is respected: a SIGHUP that was ignored stays so") {
  const auto former = ::signal(SIGHUP, SIG_IGN);
  {
    InterruptGuard guard;
    ::raise(SIGHUP);
    CHECK_FALSE(guard.requested());
  }
  ::signal(SIGHUP, former);
}
