#include "imdb/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "norma/core/atomic_file.h"

namespace imdb {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* what, int error) {
  throw WriteError("write",
                   fmt::format("cannot {} {}: {}{}", what, path.string(), std::strerror(error),
                               error == ENOSPC ? "; free some space and run again" : ""));
}

// Closes on every way out.
struct Descriptor {
  int value = -1;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

}  // namespace

std::string read_file(const fs::path& path) {
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  norma::check<norma::FileError>(stream.good() && !fs::is_directory(path), "read",
                                 "cannot open {}: {}", path.string(),
                                 errno != 0 ? std::strerror(errno) : "it is a folder");
  std::string content((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  norma::check<norma::FileError>(!stream.bad(), "read", "cannot read {}: {}", path.string(),
                                 std::strerror(errno));
  return content;
}

void sync_to_disk(const fs::path& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.value < 0) fail(path, "open", errno);
  // Some file systems cannot sync a folder (EINVAL); there is nothing more to do then.
  if (::fsync(file.value) != 0 && errno != EINVAL && errno != ENOTSUP) fail(path, "sync", errno);
}

void write_file_atomic(const fs::path& path, std::string_view content) {
  try {
    norma::AtomicFile file(path);
    file.write(content);
    file.commit();
  } catch (const norma::FileError& error) {
    throw WriteError(error);
  }
}

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail(path, "create folder", error.value());
  if (!fs::is_directory(path, error)) fail(path, "create folder", ENOTDIR);
}

AppendFile::AppendFile(const fs::path& path) : path_(path) {
  stream_.open(path, std::ios::binary | std::ios::app);
  if (!stream_) fail(path_, "create", errno);
}

void AppendFile::write(std::string_view bytes) {
  stream_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!stream_) fail(path_, "write", errno);
}

void AppendFile::flush() {
  stream_.flush();
  if (!stream_) fail(path_, "write", errno);
}

}  // namespace imdb
