#include "imdb/run_folder.h"

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
