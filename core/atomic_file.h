// AtomicFile: a file that appears complete or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace norma {

/// Writes beside `path` and takes its name in commit(), after everything reached the disk. A crash,
/// a full disk or an exception on the way leaves whatever stood under `path` before. All failures
/// throw FileError naming file and reason.
///
/// A symbolic link stays and its target is replaced. What stands under `path` and is no regular
/// file (a folder, device, FIFO or socket) is an error: the new file would take its place.
///
///     AtomicFile file("run/metrics.json");
///     file.write(text);
///     file.commit();
class AtomicFile {
 public:
  /// Creates the final path + ".tmp<something unique>"; its folder must exist.
  explicit AtomicFile(std::filesystem::path path);
  /// Removes the temporary file unless committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Flushes to the disk and renames to `path`. Nothing can be written afterwards.
  void commit();

 private:
  [[noreturn]] void fail(const char* action) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

}  // namespace norma
