#include "norma/core/atomic_file.h"

#include "norma/core/error.h"
#include "support/catch.h"
#include "support/temporary_folder.h"

#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>

namespace norma {
namespace {

using test::TemporaryFolder;

std::string contents(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}
std::ptrdiff_t file_count(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

TEST_CASE("a file appears with commit and not before", "[atomic_file]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "file";
  {
    AtomicFile file(path);
    file.write("one ");
    file.write("two");
    CHECK_FALSE(std::filesystem::exists(path));
    file.commit();
    CHECK(contents(path) == "one two");
  }
  CHECK(file_count(folder.path()) == 1);
}

TEST_CASE("without commit the old file stays", "[atomic_file]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "file";
  std::ofstream(path) << "old";
  { AtomicFile(path).write("new"); }
  CHECK(contents(path) == "old");
  CHECK(file_count(folder.path()) == 1);
}

TEST_CASE("a full disk leaves the old file and no rubbish", "[atomic_file]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "file";
  std::ofstream(path) << "old";
  // A limit on file sizes fails a write half way, as a full disk does.
  struct rlimit previous {};
  getrlimit(RLIMIT_FSIZE, &previous);
  const struct rlimit small = {4096, previous.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  try {
    AtomicFile file(path);
    file.write(std::string(10000, 'x'));
    file.commit();
  } catch (const FileError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &previous);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(message, Catch::Contains("[write_file]") && Catch::Contains(path.string()) &&
                          Catch::Contains("File too large"));
  CHECK(contents(path) == "old");
  CHECK(file_count(folder.path()) == 1);
}

TEST_CASE("a missing folder is named", "[atomic_file]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(AtomicFile(folder.path() / "none" / "file"),
                    Catch::Contains("No such file") && Catch::Contains("create its folder first"));
}

}  // namespace
}  // namespace norma
