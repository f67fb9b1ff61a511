#include "imdb/byte_source.h"

#include <norma/core/error.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace imdb {

using norma::check;
using norma::FileError;

namespace {

constexpr std::size_t kBlock = 256 * 1024;

// Gives one peeked block back before the rest.
class PeekedSource : public ByteSource {
 public:
  PeekedSource(std::string first, std::unique_ptr<ByteSource> rest)
      : first_(std::move(first)), rest_(std::move(rest)) {}
  std::string_view next() override {
    if (std::exchange(given_, true)) return rest_->next();
    return first_.empty() ? rest_->next() : std::string_view(first_);
  }

 private:
  std::string first_;
  std::unique_ptr<ByteSource> rest_;
  bool given_ = false;
};

}  // namespace

FileSource::FileSource(const std::filesystem::path& path)
    : name_(path.string()), file_(path, std::ios::binary), block_(kBlock) {
  check<FileError>(file_.is_open(), "read_dataset", "'{}' must be readable; got: {}", name_,
                   std::strerror(errno));
}

std::string_view FileSource::next() {
  if (file_.eof()) return {};
  file_.read(block_.data(), static_cast<std::streamsize>(block_.size()));
  check<FileError>(!file_.bad(), "read_dataset", "'{}' must be readable to its end; got: {}", name_,
                   std::strerror(errno));
  return {block_.data(), static_cast<std::size_t>(file_.gcount())};
}

std::string_view MemorySource::next() {
  const std::string_view block = bytes_.substr(0, kBlock);
  bytes_.remove_prefix(block.size());
  return block;
}

GzipSource::GzipSource(std::unique_ptr<ByteSource> compressed, std::string name)
    : compressed_(std::move(compressed)), name_(std::move(name)), block_(kBlock) {
  check<FileError>(inflateInit2(&stream_, 15 + 16) == Z_OK, "read_dataset",
                   "zlib must start; got no memory");
}

GzipSource::~GzipSource() { inflateEnd(&stream_); }

bool GzipSource::refill() {
  const std::string_view bytes = compressed_->next();
  // zlib's interface predates const.
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_.avail_in = static_cast<uInt>(bytes.size());
  return !bytes.empty();
}

std::string_view GzipSource::next() {
  stream_.next_out = reinterpret_cast<Bytef*>(block_.data());
  stream_.avail_out = static_cast<uInt>(block_.size());
  while (!finished_ && stream_.avail_out > 0) {
    if (stream_.avail_in == 0 && !refill()) {
      check<FileError>(!in_member_, "read_dataset",
                       "'{}' must be complete; got a truncated gzip stream; fetch it again", name_);
      finished_ = true;
      break;
    }
    if (!in_member_) {
      // Another member may follow the last; anything else (zero padding) is ignored, as gzip does.
      if (*stream_.next_in != 0x1f) {
        finished_ = true;
        break;
      }
      inflateReset(&stream_);
      in_member_ = true;
    }
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      in_member_ = false;
    } else {
      check<FileError>(status == Z_OK || status == Z_BUF_ERROR, "read_dataset",
                       "'{}' must be an undamaged gzip file; got: {}; fetch it again", name_,
                       stream_.msg ? stream_.msg : "no memory");
    }
  }
  return {block_.data(), block_.size() - stream_.avail_out};
}

std::unique_ptr<ByteSource> inflate_if_gzip(std::unique_ptr<ByteSource> source,
                                            const std::string& name) {
  std::string first(source->next());
  const bool gzip = first.size() >= 2 && first[0] == '\x1f' && first[1] == '\x8b';
  auto whole = std::make_unique<PeekedSource>(std::move(first), std::move(source));
  if (!gzip) return whole;
  return std::make_unique<GzipSource>(std::move(whole), name);
}

}  // namespace imdb
