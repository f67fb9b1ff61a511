#include "imdb/run_folder.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "../support/catch.h"
#include "imdb/files.h"
#include "support.h"

using namespace imdb;
using Catch::Contains;

namespace {
void fill(const std::filesystem::path& folder) {
  write_file_atomic(folder / "model.safetensors", "weights");
  write_file_atomic(folder / "state.json", "{}");
}

// Runs `body` in a process of its own that is killed at the `count`-th time that it enters or
// leaves the kernel. False if it ended before.
bool die_after_system_calls(int count, const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(2);
    ::raise(SIGSTOP);
    try {
      body();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  for (int i = 0; WIFSTOPPED(status) && i < count; ++i) {
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    REQUIRE(::waitpid(child, &status, 0) == child);
  }
  if (WIFEXITED(status)) {
    if (WEXITSTATUS(status) == 2) WARN("ptrace is not allowed here: nothing was tested");
    CHECK(WEXITSTATUS(status) != 1);
    return false;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return true;
}

}  // namespace

TEST_CASE("checkpoints appear whole, the newest are kept, the latest is found") {
  TemporaryFolder folder;
  const auto run = folder.path / "run";
  for (int step : {5, 10, 100}) write_checkpoint_folder(run, step, 2, fill);
  const auto all = list_checkpoints(run);
  REQUIRE(all.size() == 2);
  CHECK(all[0].filename() == "step-00000010");
  CHECK(find_checkpoint(run) == all[1]);
  CHECK(find_checkpoint(all[0]) == all[0]);
  CHECK(run_of_checkpoint(all[0]) == std::filesystem::weakly_canonical(run));
  CHECK(read_file(all[1] / "model.safetensors") == "weights");
}

TEST_CASE("a checkpoint that fails leaves the former and no part of itself") {
  TemporaryFolder folder;
  write_checkpoint_folder(folder.path, 1, 2, fill);
  CHECK_THROWS_AS(write_checkpoint_folder(folder.path, 2, 2,
                                          [](const auto& path) {
                                            fill(path);
                                            throw WriteError("write", "disk full");
                                          }),
                  WriteError);
  REQUIRE(list_checkpoints(folder.path).size() == 1);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path / "checkpoints"), {}) == 1);
}

TEST_CASE("a checkpoint is replaced by one of the same step, and only a complete one") {
  TemporaryFolder folder;
  const auto target = write_checkpoint_folder(folder.path, 7, 2, fill);
  const auto refill = [&](const std::filesystem::path& path) {
    CHECK(find_checkpoint(folder.path) == target);
    fill(path);
    write_file_atomic(path / "model.safetensors", "new weights");
    CHECK(read_file(find_checkpoint(folder.path) / "model.safetensors") == "weights");
  };
  CHECK(write_checkpoint_folder(folder.path, 7, 2, refill) == target);
  CHECK(read_file(target / "model.safetensors") == "new weights");
  CHECK(std::distance(std::filesystem::directory_iterator(target.parent_path()), {}) == 1);
}

TEST_CASE("what a power failure leaves while a checkpoint is replaced is found, then tidied") {
  TemporaryFolder folder;
  namespace fs = std::filesystem;
  const auto target = write_checkpoint_folder(folder.path, 7, 2, fill);
  const fs::path replaced = target.string() + ".replaced";
  fs::rename(target, replaced);  // the new one is not there yet
  CHECK(find_checkpoint(folder.path) == replaced);
  CHECK(run_of_checkpoint(replaced) == fs::weakly_canonical(folder.path));
  fs::copy(replaced, target, fs::copy_options::recursive);  // it is; the old one not yet removed
  CHECK(find_checkpoint(folder.path) == target);
  fs::create_directories(target.parent_path() / "tmp-00000003");  // of a third
  CHECK(write_checkpoint_folder(folder.path, 7, 2, fill) == target);
  CHECK(std::distance(fs::directory_iterator(target.parent_path()), {}) == 1);
}

TEST_CASE("wherever the process dies, a complete checkpoint remains") {
  TemporaryFolder folder;
  write_checkpoint_folder(folder.path, 7, 1, fill);
  for (int calls = 1;; ++calls) {
    const auto died =
        die_after_system_calls(calls, [&] { write_checkpoint_folder(folder.path, 7, 1, fill); });
    if (!died) break;  // it ran to its end: all places have had their turn
    INFO("killed at stop " << calls << " before and after system calls");
    const auto found = find_checkpoint(folder.path);
    REQUIRE(read_file(found / "model.safetensors") == "weights");
    REQUIRE(read_file(found / "state.json") == "{}");
    REQUIRE(calls < 10000);
  }
}

TEST_CASE("the newest checkpoint is that of the largest step, also beyond eight digits") {
  TemporaryFolder folder;
  for (std::int64_t step : {9, 99999999, 100000000})
    write_checkpoint_folder(folder.path, step, 2, fill);
  CHECK(find_checkpoint(folder.path).filename() == "step-100000000");
}

TEST_CASE("a folder that holds a run is not overwritten by accident") {
  TemporaryFolder folder;
  const auto run = (folder.path / "run").string();
  CHECK(prepare_run_folder(run, "x", false) == run);
  write_file_atomic(run + "/notes.txt", "mine");
  CHECK_NOTHROW(prepare_run_folder(run, "x", false));  // no run in it yet
  write_checkpoint_folder(run, 1, 2, fill);
  CHECK_THROWS_WITH(prepare_run_folder(run, "x", false),
                    Contains("--resume") && Contains("--overwrite"));
  CHECK_NOTHROW(prepare_run_folder(run, "x", true));
  CHECK_FALSE(holds_run(run));
  CHECK(read_file(run + "/notes.txt") == "mine");
  CHECK_THROWS_WITH(prepare_run_folder(run + "/notes.txt", "x", false),
                    Contains("must be a folder"));
}

TEST_CASE("a model that is not there is asked for by name") {
  TemporaryFolder folder;
  CHECK_THROWS_WITH(find_checkpoint((folder.path / "absent").string()), Contains("does not exist"));
  CHECK_THROWS_WITH(find_checkpoint(folder.path.string()),
                    Contains("must be a run or a checkpoint"));
}
