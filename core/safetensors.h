// safetensors: tensors by name in one file, the format of the Hugging Face library of that name.
//
//     safetensors::save_file(model.state_dict(), "model.safetensors", {{"format", "pt"}});
//     auto [tensors, metadata] = safetensors::load_file("model.safetensors");
//
// Layout: 8 bytes little-endian length n of the header; n bytes of JSON, padded with spaces, that
// map each name to
// {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, and "__metadata__" to strings;
// then the data, row-major and little-endian, which the offsets cover without gaps or overlaps.
// Source: https://github.com/huggingface/safetensors (its validation rules are kept, all of them).
#pragma once

#include "norma/core/tensor.h"

#include <concepts>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace norma::safetensors {

using Metadata = std::map<std::string, std::string>;
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// What the header says about one tensor. Offsets count from the end of the header.
struct Entry {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct Header {
  std::vector<Entry> entries;  ///< in the order of their data
  Metadata metadata;
};

/// The header in `json`, for data of `data_bytes` bytes. Throws FileError, with `file` in its text,
/// for everything that is wrong with it: no JSON, no object, names or fields twice, missing or
/// unknown fields, dtypes that norma does not have, shapes that are negative, too long or overflow,
/// offsets out of range, overlapping, with holes, or not of the size that shape and dtype ask for.
Header parse_header(const std::string& json, std::uint64_t data_bytes, const std::string& file);

/// A file opened for reading: the header is read and checked, tensors are loaded on demand.
class Reader {
 public:
  /// Throws FileError where the file is missing, truncated or damaged.
  explicit Reader(std::filesystem::path path);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  const std::vector<Entry>& entries() const { return header_.entries; }
  const Metadata& metadata() const { return header_.metadata; }
  bool contains(const std::string& name) const { return index_.contains(name); }
  /// A copy of the tensor `name` on `device`; throws FileError when there is none.
  Tensor load(const std::string& name, const Device& device = cpu) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t data_start_ = 0;
  Header header_;
  std::map<std::string, std::size_t> index_;
};

/// A whole file.
struct Contents {
  std::map<std::string, Tensor> tensors;
  Metadata metadata;
};

/// All tensors of `path`, copied to `device`. Throws FileError.
Contents load_file(const std::filesystem::path& path, const Device& device = cpu);

/// Writes `tensors` to `path`, which appears complete or not at all (AtomicFile). Tensors of any
/// strides and device are written contiguous; shared memory is written once for each name. Data
/// stand in order of element size, so that each tensor is aligned. Throws ValueError for an
/// undefined tensor, a name given twice or not in UTF-8; FileError for a full disk and the like.
void save_file(const NamedTensors& tensors, const std::filesystem::path& path,
               const Metadata& metadata = {});
/// The same from a map. (A template, so that a braced list means NamedTensors.)
template <std::same_as<std::map<std::string, Tensor>> Map>
void save_file(const Map& tensors, const std::filesystem::path& path,
               const Metadata& metadata = {}) {
  save_file(NamedTensors(tensors.begin(), tensors.end()), path, metadata);
}

}  // namespace norma::safetensors
