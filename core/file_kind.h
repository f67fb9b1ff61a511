// What stands under a path, in words, for error texts.
#pragma once

#include <filesystem>
#include <string_view>

namespace norma {

/// "a folder", "a FIFO" and the like.
inline std::string_view file_kind(std::filesystem::file_type type) {
  using std::filesystem::file_type;
  switch (type) {
    case file_type::regular:
      return "a regular file";
    case file_type::directory:
      return "a folder";
    case file_type::symlink:
      return "a symbolic link";
    case file_type::block:
      return "a block device";
    case file_type::character:
      return "a character device";
    case file_type::fifo:
      return "a FIFO";
    case file_type::socket:
      return "a socket";
    case file_type::not_found:
      return "nothing";
    default:
      return "something unknown";
  }
}

}  // namespace norma
