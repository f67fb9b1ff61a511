// Archives made at test time.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "support.h"

namespace imdb_test {

struct File {
  std::string path;
  std::string content;
  unsigned type = AE_IFREG;
};

enum class Format { tar, tar_gz, tar_xz, zip };

/// The bytes of an archive of `files`, by libarchive's writer.
inline std::string make_archive(const std::vector<File>& files, Format format = Format::tar_gz) {
  std::string out(1 << 22, '\0');
  std::size_t used = 0;
  archive* writer = archive_write_new();
  if (format == Format::zip)
    archive_write_set_format_zip(writer);
  else
    archive_write_set_format_gnutar(writer);
  if (format == Format::tar_gz) archive_write_add_filter_gzip(writer);
  if (format == Format::tar_xz) archive_write_add_filter_xz(writer);
  archive_write_open_memory(writer, out.data(), out.size(), &used);
  for (const File& file : files) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, file.path.c_str());
    archive_entry_set_filetype(entry, file.type);
    archive_entry_set_perm(entry, 0644);
    if (file.type == AE_IFLNK) {
      archive_entry_set_symlink(entry, file.content.c_str());
      archive_entry_set_size(entry, 0);
    } else {
      archive_entry_set_size(entry, static_cast<la_int64_t>(file.content.size()));
    }
    archive_write_header(writer, entry);
    if (file.type == AE_IFREG) archive_write_data(writer, file.content.data(), file.content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  out.resize(used);
  return out;
}

/// `per_folder` reviews in each of the four folders and the lists of their movies; two reviews a
/// movie.
inline std::vector<File> small_dataset(int per_folder = 4, bool with_urls = true) {
  std::vector<File> files;
  for (const std::string side : {"train", "test"})
    for (const std::string label : {"neg", "pos"}) {
      std::string urls;
      for (int id = 0; id < per_folder; ++id) {
        const std::string number = std::to_string(id);
        files.push_back({"aclImdb/" + side + "/" + label + "/" + number +
                             (label == "pos" ? "_9.txt" : "_2.txt"),
                         "A " + label + " review, number " + number + " of " + side + "."});
        urls += "http://www.imdb.com/title/tt" + std::string(label == "pos" ? "01" : "02") +
                std::to_string(10000 + id / 2) + "/usercomments\n";
      }
      if (with_urls) files.push_back({"aclImdb/" + side + "/urls_" + label + ".txt", urls});
    }
  return files;
}

/// Writes `content` to `folder/name` and returns that path.
inline std::filesystem::path write_file(const std::filesystem::path& folder,
                                        const std::string& name, const std::string& content) {
  const std::filesystem::path path = folder / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

}  // namespace imdb_test
