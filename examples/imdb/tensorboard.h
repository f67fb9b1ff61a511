// TensorBoard event files: scalars and texts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "imdb/files.h"

namespace imdb {

/// CRC-32C (Castagnoli), as event files use it.
std::uint32_t crc32c(std::string_view bytes);

/// One record of the TFRecord format: length (u64), masked CRC of the length, bytes, masked CRC of
/// the bytes; little endian. mask(c) = ((c >> 15) | (c << 17)) + 0xa282ead8.
std::string tfrecord(std::string_view bytes);

/// Writes `folder/events.out.tfevents.<time>.<host>.<pid>`; watch it with `tensorboard --logdir
/// folder`. A resumed run opens a second file in the same folder, and TensorBoard joins them.
class EventWriter {
 public:
  /// Creates the folder and the file. Values that older files in the folder hold for `first_step`
  /// and later are void from now on (purge_step in PyTorch's SummaryWriter): a run that was killed
  /// has written some beyond its last checkpoint. Throws WriteError, as do all methods.
  explicit EventWriter(const std::filesystem::path& folder, std::int64_t first_step = 0);

  void scalar(std::string_view tag, double value, std::int64_t step);
  /// Markdown, shown in the TEXT tab.
  void text(std::string_view tag, std::string_view markdown, std::int64_t step);
  void flush() { file_.flush(); }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace imdb
