#include "norma/core/atomic_file.h"

#include "norma/core/error.h"
#include "norma/core/file_kind.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace norma {

namespace fs = std::filesystem;

namespace {

/// Where a chain of symbolic links ends, whether or not something stands there: the links are to
/// stay. Throws FileError where the new file would take the place of something that is no file.
fs::path final_path(fs::path path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  check<FileError>(type != fs::file_type::none, "write_file",
                   "{} must be writable; got \"{}\" on the attempt to look at it; check the path "
                   "and its permissions",
                   path.string(), error.message());
  check<FileError>(type == fs::file_type::regular || type == fs::file_type::not_found, "write_file",
                   "{} must be a regular file or not exist; got {}; give the path of a file",
                   path.string(), file_kind(type));
  for (;;) {
    const fs::path target = fs::read_symlink(path, error);
    if (error) return path;  // it is none
    path = path.parent_path() / target;
  }
}

}  // namespace

AtomicFile::AtomicFile(fs::path path) : path_(final_path(std::move(path))) {
  static std::atomic<int> counter{0};
  temporary_ = path_;
  temporary_ += fmt::format(".tmp{}-{}", getpid(), counter++);
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("create");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  const char* position = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_, position, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("write");
    position += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  // The data must be on the disk before the name is: otherwise a power failure can leave an empty
  // file under it.
  if (fsync(descriptor_) != 0) fail("flush");
  if (close(std::exchange(descriptor_, -1)) != 0) fail("close");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
  temporary_.clear();
  const fs::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  // And so should the new name; a file system that cannot do that for a folder has no way to be
  // asked.
  if (const int handle = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); handle >= 0) {
    fsync(handle);
    close(handle);
  }
}

void AtomicFile::fail(const char* action) const {
  const int reason = errno;
  const char* hint = reason == ENOSPC || reason == EDQUOT ? "make room on the disk"
                     : reason == ENOENT                   ? "create its folder first"
                                                          : "check the path and its permissions";
  const std::string text =
      fmt::format("{} must be writable; got \"{}\" on the attempt to {} it; {}", path_.string(),
                  std::strerror(reason), action, hint);
  throw FileError("write_file", text);
}

}  // namespace norma
