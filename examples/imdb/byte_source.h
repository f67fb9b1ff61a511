// Where the bytes of an archive come from: a file, memory, or a gzip stream over one of these.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace imdb {

/// A stream of byte blocks. `next` returns an empty view at the end; a view is valid until the next
/// call. Failures are norma::FileError.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::string_view next() = 0;
};

class FileSource : public ByteSource {
 public:
  explicit FileSource(const std::filesystem::path& path);
  std::string_view next() override;

 private:
  std::string name_;
  std::ifstream file_;
  std::vector<char> block_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
  std::string_view next() override;

 private:
  std::string_view bytes_;
};

/// Inflates gzip members and verifies their CRC-32 and length, which libarchive's own filter reads
/// past: a flipped bit in a review would otherwise go unnoticed.
class GzipSource : public ByteSource {
 public:
  GzipSource(std::unique_ptr<ByteSource> compressed, std::string name);
  ~GzipSource() override;
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;
  std::string_view next() override;

 private:
  bool refill();

  std::unique_ptr<ByteSource> compressed_;
  std::string name_;
  z_stream stream_{};
  std::vector<char> block_;
  bool in_member_ = true;
  bool finished_ = false;
};

/// `source`, inflated if its first bytes say gzip.
std::unique_ptr<ByteSource> inflate_if_gzip(std::unique_ptr<ByteSource> source,
                                            const std::string& name);

}  // namespace imdb
