#include "imdb/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <norma/core/error.h>
#include <norma/core/file_kind.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "imdb/byte_source.h"

namespace imdb {

using norma::check;
using norma::FileError;
namespace fs = std::filesystem;

namespace {

// libarchive calls C functions: an exception waits here until libarchive has returned.
struct Feed {
  std::unique_ptr<ByteSource> source;
  std::exception_ptr failure;
};

la_ssize_t read_block(archive* reader, void* data, const void** block) {
  auto& feed = *static_cast<Feed*>(data);
  try {
    const std::string_view bytes = feed.source->next();
    *block = bytes.data();
    return static_cast<la_ssize_t>(bytes.size());
  } catch (...) {
    feed.failure = std::current_exception();
    archive_set_error(reader, EIO, "cannot read");
    return ARCHIVE_FATAL;
  }
}

class Reader {
 public:
  Reader(std::unique_ptr<ByteSource> source, std::string name)
      : name_(std::move(name)), archive_(archive_read_new(), &archive_read_free) {
    check<FileError>(archive_ != nullptr, "read_dataset", "libarchive must start; got no memory");
    // Not "all": some of libarchive's filters start programs, and its mtree format opens files that
    // the archive names.
    archive_read_support_filter_bzip2(get());
    archive_read_support_filter_xz(get());
    archive_read_support_filter_zstd(get());
    archive_read_support_format_tar(get());
    archive_read_support_format_zip_streamable(get());
    feed_.source = std::move(source);
    guard(archive_read_open(get(), &feed_, nullptr, &read_block, nullptr));
  }

  // The next entry, or nullptr at the end.
  archive_entry* next() {
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(get(), &entry);
    if (status == ARCHIVE_EOF) return nullptr;
    guard(status);
    any_ = true;
    return entry;
  }

  // The content of the current entry.
  std::string content(std::string_view path, std::uint64_t limit) {
    std::string bytes;
    for (;;) {
      const void* block = nullptr;
      std::size_t size = 0;
      la_int64_t offset = 0;
      const int status = archive_read_data_block(get(), &block, &size, &offset);
      if (status == ARCHIVE_EOF) return bytes;
      guard(status);
      // Sparse entries skip zeros, so the offset counts, not the sum of sizes.
      const auto end = static_cast<std::uint64_t>(offset) + size;
      check<FileError>(offset >= 0 && end <= limit, "read_dataset",
                       "'{}' in '{}' must have at most {} bytes; got more", path, name_, limit);
      if (end > bytes.size()) bytes.resize(end);
      std::copy_n(static_cast<const char*>(block), size,
                  bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    }
  }

  // tar ends before its file does: reading on makes the gzip layer check its trailer.
  void drain() {
    while (!feed_.source->next().empty()) {
    }
  }

 private:
  archive* get() { return archive_.get(); }

  void guard(int status) {
    if (feed_.failure) std::rethrow_exception(std::exchange(feed_.failure, nullptr));
    if (status == ARCHIVE_OK || status == ARCHIVE_WARN) return;
    const char* text = archive_error_string(get());
    if (!any_)
      throw FileError("read_dataset",
                      fmt::format("'{}' must be a tar or zip archive or a folder; got: {}", name_,
                                  text ? text : "unknown content"));
    throw FileError("read_dataset",
                    fmt::format("'{}' must be a complete, undamaged archive; got: {}; fetch it "
                                "again",
                                name_, text ? text : "a damaged entry"));
  }

  std::string name_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  Feed feed_;
  bool any_ = false;
};

void read_archive(std::unique_ptr<ByteSource> source, const std::string& name,
                  const EntryFilter& filter, const EntrySink& sink) {
  Reader reader(inflate_if_gzip(std::move(source), name), name);
  while (archive_entry* entry = reader.next()) {
    const char* raw_path = archive_entry_pathname(entry);
    if (!raw_path || archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
      continue;
    const std::string path = raw_path;  // the entry dies with the next one
    if (const std::uint64_t limit = filter(path)) sink(path, reader.content(path, limit));
  }
  reader.drain();
}

void read_folder(const fs::path& root, const EntryFilter& filter, const EntrySink& sink) {
  std::vector<fs::path> paths;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::end(it); ++it) {
    if (it->is_directory() && it->path().filename() == "unsup")
      it.disable_recursion_pending();
    else if (it->is_regular_file() && !it->is_symlink())
      paths.push_back(it->path());
  }
  std::sort(paths.begin(), paths.end());  // the order of a folder is the file system's whim
  // Names start with the root's own name and its parent's: the root may be `train` or even `pos`.
  const fs::path above = fs::canonical(root);
  const fs::path prefix = above.parent_path().filename() / above.filename();
  for (const fs::path& path : paths) {
    const std::string name = (prefix / path.lexically_relative(root)).generic_string();
    const std::uint64_t limit = filter(name);
    if (!limit) continue;
    check<FileError>(fs::file_size(path) <= limit, "read_dataset",
                     "'{}' must have at most {} bytes; got {}", path.string(), limit,
                     fs::file_size(path));
    FileSource file(path);
    std::string content;
    for (std::string_view block = file.next(); !block.empty(); block = file.next())
      content.append(block);
    sink(name, std::move(content));
  }
}

}  // namespace

void read_entries(const fs::path& path, const EntryFilter& filter, const EntrySink& sink) {
  try {
    check<FileError>(fs::exists(path), "read_dataset",
                     "'{}' must exist; got no such file or folder; 'make imdb-data' fetches the "
                     "official archive",
                     path.string());
    if (fs::is_directory(path)) return read_folder(path, filter, sink);
    // A device may never end, and a FIFO never begin.
    check<FileError>(fs::is_regular_file(path), "read_dataset",
                     "'{}' must be a file or a folder; got {}; give the path of the archive",
                     path.string(), norma::file_kind(fs::status(path).type()));
  } catch (const fs::filesystem_error& error) {
    throw FileError("read_dataset", fmt::format("'{}' must be readable; got: {}", path.string(),
                                                error.code().message()));
  }
  read_archive(std::make_unique<FileSource>(path), path.string(), filter, sink);
}

void read_entries_memory(std::string_view bytes, const std::string& name, const EntryFilter& filter,
                         const EntrySink& sink) {
  read_archive(std::make_unique<MemorySource>(bytes), name, filter, sink);
}

}  // namespace imdb
