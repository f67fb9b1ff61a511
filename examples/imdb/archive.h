// Streaming through the regular files of an archive or a folder, without unpacking to disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace imdb {

/// What to do with a file, decided by its name before its content is read.
/// Returns the most bytes the file may have, or 0 to skip it.
using EntryFilter = std::function<std::uint64_t(std::string_view path)>;
/// Takes a file that the filter let through. `path` has `/` as separator.
using EntrySink = std::function<void(std::string_view path, std::string content)>;

/// Streams the regular files of a tar or zip archive (plain, gzip, bzip2, xz, zstd) or, if `path`
/// is a folder, of that folder's tree (folders named `unsup` are not entered). Symbolic links are
/// not followed. gzip checksums are verified (libarchive itself does not).
///
/// Throws norma::FileError: missing or unreadable file, a device or FIFO, not an archive, truncated
/// or damaged, a file larger than the filter allows.
void read_entries(const std::filesystem::path& path, const EntryFilter& filter,
                  const EntrySink& sink);

/// The same for an archive in memory; `name` stands in error texts.
void read_entries_memory(std::string_view bytes, const std::string& name, const EntryFilter& filter,
                         const EntrySink& sink);

}  // namespace imdb
