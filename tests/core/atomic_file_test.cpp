#include "norma/core/atomic_file.h"

#include "norma/core/error.h"
#include "support/catch.h"
#include "support/temporary_folder.h"

#include <sys/resource.h>
#include <sys/stat.h>

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

TEST_CASE("symbolic links stay, and what they mean is replaced", "[atomic_file]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "other");
  const auto target = folder.path() / "other" / "file";
  const auto link = folder.path() / "link";
  // One link leads to the next, relative to its own folder.
  std::filesystem::create_symlink("other/inner", link);
  std::filesystem::create_symlink("file", folder.path() / "other" / "inner");
  for (const char* text : {"new", "newer"}) {  // at first the links lead nowhere
    AtomicFile file(link);
    file.write(text);
    file.commit();
    CHECK(contents(target) == text);
  }
  CHECK(std::filesystem::is_symlink(link));
  CHECK(std::filesystem::is_symlink(folder.path() / "other" / "inner"));
  CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(target)));
  CHECK(file_count(folder.path()) == 2);
  CHECK(file_count(folder.path() / "other") == 2);

  std::filesystem::create_symlink("circle", folder.path() / "circle");
  CHECK_THROWS_WITH(AtomicFile(folder.path() / "circle"),
                    Catch::Contains("Too many levels of symbolic links"));
}

TEST_CASE("what is no regular file is never replaced", "[atomic_file]") {
  const TemporaryFolder folder;
  const auto fifo = folder.path() / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  std::filesystem::create_symlink("fifo", folder.path() / "link");
  for (const char* name : {"fifo", "link"})
    CHECK_THROWS_WITH(AtomicFile(folder.path() / name),
                      Catch::Contains(std::string("[write_file] ")) && Catch::Contains(name) &&
                          Catch::Contains("must be a regular file or not exist; got a FIFO; "
                                          "give the path of a file"));
  CHECK_THROWS_WITH(AtomicFile(folder.path()), Catch::Contains("got a folder"));
  CHECK(std::filesystem::is_fifo(fifo));
  CHECK(file_count(folder.path()) == 2);
}

TEST_CASE("a missing folder is named", "[atomic_file]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(AtomicFile(folder.path() / "none" / "file"),
                    Catch::Contains("No such file") && Catch::Contains("create its folder first"));
}

}  // namespace
}  // namespace norma
