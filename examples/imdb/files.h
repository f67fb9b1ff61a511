// Reading and writing the files of a run.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "norma/core/error.h"

namespace imdb {

/// A file could not be written (full disk, no permission). The program ends with exit code 3, while
/// a file that cannot be read is bad input (norma::FileError, exit code 2).
struct WriteError : norma::FileError {
  using norma::FileError::FileError;
  explicit WriteError(const norma::FileError& error) : norma::FileError(error) {}
};

/// The whole file. Throws norma::FileError when it is missing or cannot be read.
std::string read_file(const std::filesystem::path& path);

/// Writes `path` so that a crash at any moment leaves the old content or the new, never a part:
/// (norma::AtomicFile). Throws WriteError; then nothing has changed.
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

/// Creates a folder and its parents. Throws WriteError.
void make_directories(const std::filesystem::path& path);

/// Flushes a file or folder to the disk. Throws WriteError.
void sync_to_disk(const std::filesystem::path& path);

/// A file that grows (event files). Every failure is a WriteError; `flush` hands all to the system.
class AppendFile {
 public:
  explicit AppendFile(const std::filesystem::path& path);
  void write(std::string_view bytes);
  void flush();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::ofstream stream_;
};

}  // namespace imdb
