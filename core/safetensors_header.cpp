// The header of a safetensors file: parsed event by event, because a parser that builds a document
// forgets duplicate keys, and because an event in the wrong place can be refused before anything
// grows.
#include "norma/core/safetensors.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <optional>
#include <set>
#include <string_view>

namespace norma::safetensors {

namespace {

using Json = nlohmann::json;

/// The norma dtype of a name in the header.
std::optional<DType> dtype_from_name(std::string_view name) {
  if (name == "BOOL") return DType::bool_;
  if (name == "I32") return DType::int32;
  if (name == "I64") return DType::int64;
  if (name == "F16") return DType::float16;
  if (name == "BF16") return DType::bfloat16;
  if (name == "F32") return DType::float32;
  if (name == "F64") return DType::float64;
  return std::nullopt;
}

class HeaderEvents final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderEvents(const std::string& file) : file_(file) {}
  Header take() { return std::move(header_); }

  bool start_object(std::size_t /*elements*/) override {
    if (place_ == Place::nothing) {
      place_ = Place::root;
    } else if (place_ == Place::root) {
      place_ = current_ == "__metadata__" ? Place::metadata : Place::tensor;
      entry_ = Entry{current_, DType::float32, {}, 0, 0};
      fields_.clear();
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    if (place_ == Place::root) {
      require(names_.insert(name).second, "names must be unique; got \"{}\" twice", name);
      current_ = name;
      return true;
    }
    require(fields_.insert(name).second, "fields of \"{}\" must be unique; got \"{}\" twice",
            current_, name);
    if (place_ == Place::tensor)
      require(name == "dtype" || name == "shape" || name == "data_offsets",
              "a tensor has dtype, shape and data_offsets; got \"{}\" in \"{}\"", name, current_);
    field_ = name;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      require(fields_.size() == 3,
              "a tensor must have dtype, shape and data_offsets; got \"{}\" without one of them",
              current_);
      header_.entries.push_back(std::move(entry_));
    }
    place_ = place_ == Place::root ? Place::nothing : Place::root;
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      header_.metadata.emplace(field_, value);
      return true;
    }
    if (place_ != Place::tensor || field_ != "dtype") unexpected("a string");
    const std::optional<DType> dtype = dtype_from_name(value);
    require(dtype.has_value(),
            "dtypes must be BOOL, I32, I64, F16, BF16, F32 or F64; got \"{}\" for \"{}\"", value,
            current_);
    entry_.dtype = *dtype;
    return true;
  }

  bool start_array(std::size_t /*elements*/) override {
    if (place_ != Place::tensor || (field_ != "shape" && field_ != "data_offsets"))
      unexpected("an array");
    place_ = field_ == "shape" ? Place::shape : Place::offsets;
    offset_count_ = 0;
    return true;
  }

  bool end_array() override {
    if (place_ == Place::offsets)
      require(offset_count_ == 2, "data_offsets must be two numbers; got {} for \"{}\"",
              offset_count_, current_);
    place_ = Place::tensor;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) {
      require(entry_.shape.size() < Shape::max_rank,
              "tensors have at most {} dimensions; got more for \"{}\"",
              static_cast<int>(Shape::max_rank), current_);
      require(value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()),
              "sizes must fit 63 bits; got {} for \"{}\"", value, current_);
      entry_.shape.push_back(static_cast<std::int64_t>(value));
    } else if (place_ == Place::offsets) {
      if (offset_count_ == 0) entry_.begin = value;
      if (offset_count_ == 1) entry_.end = value;
      ++offset_count_;
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool number_integer(number_integer_t value) override {
    if (place_ == Place::shape || place_ == Place::offsets)
      require(false, "sizes and offsets must not be negative; got {} for \"{}\"", value, current_);
    unexpected("a number");
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    if (place_ == Place::shape || place_ == Place::offsets)
      require(false, "sizes and offsets must be integers below 2^63; got {} for \"{}\"", text,
              current_);
    unexpected("a number");
  }
  bool null() override { unexpected("null"); }
  bool boolean(bool /*value*/) override { unexpected("a boolean"); }
  bool binary(binary_t& /*value*/) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    require(false, "the header must be JSON; got an error at byte {} ({}); the file is damaged",
            position, error.what());
    return false;
  }

 private:
  enum class Place { nothing, root, metadata, tensor, shape, offsets };

  template <class... Args>
  void require(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (!condition)
      throw FileError("safetensors",
                      file_ + ": " + fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void unexpected(const char* what) const {
    const char* const expected = place_ == Place::nothing    ? "an object of tensors"
                                 : place_ == Place::root     ? "an object for each name"
                                 : place_ == Place::metadata ? "strings in __metadata__"
                                 : place_ == Place::tensor
                                     ? "a string for dtype, arrays for the rest"
                                     : "integers";
    throw FileError("safetensors",
                    fmt::format("{}: the header must hold {}; got {}{}", file_, expected, what,
                                current_.empty() ? "" : " at \"" + current_ + "\""));
  }

  const std::string& file_;
  Header header_;
  Place place_ = Place::nothing;
  std::set<std::string> names_;
  std::set<std::string> fields_;
  std::string current_;
  std::string field_;
  Entry entry_;
  int offset_count_ = 0;
};

/// Bytes of the tensor, or nothing where they overflow.
std::optional<std::uint64_t> byte_size(const Entry& entry) {
  std::uint64_t bytes = element_size(entry.dtype);
  for (const std::int64_t size : entry.shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes))
      return std::nullopt;
  return bytes;
}

}  // namespace

Header parse_header(const std::string& json, std::uint64_t data_bytes, const std::string& file) {
  HeaderEvents events(file);
  Json::sax_parse(json, &events);
  Header header = events.take();
  std::sort(header.entries.begin(), header.entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t position = 0;
  for (const Entry& entry : header.entries) {
    check<FileError>(
        entry.begin <= entry.end && entry.end <= data_bytes, "safetensors",
        "{}: offsets must lie in the {} bytes of data; got [{}, {}] for \"{}\"; the file is "
        "truncated or damaged",
        file, data_bytes, entry.begin, entry.end, entry.name);
    check<FileError>(entry.begin == position, "safetensors",
                     "{}: tensors must follow each other without {}; got \"{}\" at {} where the "
                     "one before ends at "
                     "{}; the file is damaged",
                     file, entry.begin < position ? "overlap" : "holes", entry.name, entry.begin,
                     position);
    const std::optional<std::uint64_t> bytes = byte_size(entry);
    check<FileError>(bytes.has_value(), "safetensors",
                     "{}: the size of a tensor must fit 64 bits; got shape {} for \"{}\"", file,
                     entry.shape, entry.name);
    check<FileError>(
        *bytes == entry.end - entry.begin, "safetensors",
        "{}: shape and offsets must agree; got {} of {} ({} bytes) in {} bytes for \"{}\"", file,
        entry.shape, entry.dtype, *bytes, entry.end - entry.begin, entry.name);
    position = entry.end;
  }
  check<FileError>(
      position == data_bytes, "safetensors",
      "{}: tensors must cover all data; got {} bytes of tensors in {} bytes; something was "
      "appended, or the file is damaged",
      file, position, data_bytes);
  return header;
}

}  // namespace norma::safetensors
