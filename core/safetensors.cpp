#include "norma/core/safetensors.h"

#include "norma/core/atomic_file.h"
#include "norma/core/grad_mode.h"
#include "norma/core/tensor_impl.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

namespace norma::safetensors {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian, and so far norma is, too");

namespace {

constexpr std::uint64_t max_header_bytes = 100'000'000;  // as in the original library

const char* dtype_to_name(DType dtype) {
  switch (dtype) {
    case DType::bool_:
      return "BOOL";
    case DType::int32:
      return "I32";
    case DType::int64:
      return "I64";
    case DType::float16:
      return "F16";
    case DType::bfloat16:
      return "BF16";
    case DType::float32:
      return "F32";
    case DType::float64:
      break;
  }
  return "F64";
}

/// Fills `out` from position `offset` of the file.
void read_at(int descriptor, void* out, std::uint64_t bytes, std::uint64_t offset,
             const std::string& file) {
  char* position = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t count = pread(descriptor, position, bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    check<FileError>(count >= 0, "safetensors", "{} must be readable; got \"{}\"", file,
                     std::strerror(errno));
    check<FileError>(count > 0, "safetensors",
                     "{} must not change while it is read; got its end too early", file);
    position += count;
    bytes -= static_cast<std::uint64_t>(count);
    offset += static_cast<std::uint64_t>(count);
  }
}

}  // namespace

Reader::Reader(std::filesystem::path path) : path_(std::move(path)) {
  const std::string file = path_.string();
  descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  check<FileError>(descriptor_ >= 0, "safetensors",
                   "{} must be a readable file; got \"{}\"; check the path", file,
                   std::strerror(errno));
  try {
    struct stat status {};
    check<FileError>(fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode), "safetensors",
                     "{} must be a regular file; got something else", file);
    const std::uint64_t size = static_cast<std::uint64_t>(status.st_size);
    check<FileError>(
        size >= 8, "safetensors",
        "{} must start with 8 bytes of header length; got {} bytes in all; the file is "
        "truncated",
        file, size);
    std::uint64_t header_bytes = 0;
    read_at(descriptor_, &header_bytes, 8, 0, file);
    check<FileError>(
        header_bytes <= max_header_bytes && header_bytes <= size - 8, "safetensors",
        "{}: the header must fit the file and 100 MB; got a length of {} in a file of {} "
        "bytes; it is truncated, or no safetensors file",
        file, header_bytes, size);
    std::string json(header_bytes, '\0');
    read_at(descriptor_, json.data(), header_bytes, 8, file);
    data_start_ = 8 + header_bytes;
    header_ = parse_header(json, size - data_start_, file);
    for (std::size_t i = 0; i < header_.entries.size(); ++i) index_[header_.entries[i].name] = i;
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

Reader::~Reader() { close(descriptor_); }

Tensor Reader::load(const std::string& name, const Device& device) const {
  const auto found = index_.find(name);
  check<FileError>(found != index_.end(), "safetensors",
                   "{} must hold \"{}\"; got {} other tensors; see entries()", path_.string(), name,
                   index_.size());
  const Entry& entry = header_.entries[found->second];
  const Tensor result = detail::make_tensor(entry.shape, entry.dtype, cpu);
  read_at(descriptor_, result.raw_data(), entry.end - entry.begin, data_start_ + entry.begin,
          path_.string());
  if (entry.dtype == DType::bool_) {
    // Any other byte in a C++ bool is undefined behaviour.
    const auto* bytes = static_cast<const unsigned char*>(result.raw_data());
    for (std::int64_t i = 0; i < result.numel(); ++i)
      check<FileError>(bytes[i] <= 1, "safetensors", "{}: bools must be 0 or 1; got {} in \"{}\"",
                       path_.string(), bytes[i], name);
  }
  return device.is_cpu() ? result : result.to(device);
}

Contents load_file(const std::filesystem::path& path, const Device& device) {
  const Reader reader(path);
  Contents contents;
  contents.metadata = reader.metadata();
  for (const Entry& entry : reader.entries())
    contents.tensors.emplace(entry.name, reader.load(entry.name, device));
  return contents;
}

void save_file(const NamedTensors& tensors, const std::filesystem::path& path,
               const Metadata& metadata) {
  std::set<std::string> names;
  std::vector<const std::pair<std::string, Tensor>*> order;
  for (const auto& item : tensors) {
    check(item.second.defined(), "safetensors",
          "tensors must be defined; got an undefined one for \"{}\"", item.first);
    check(item.first != "__metadata__", "safetensors",
          "\"__metadata__\" must not be a tensor's name");
    check(names.insert(item.first).second, "safetensors", "names must be unique; got \"{}\" twice",
          item.first);
    order.push_back(&item);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->second.element_size() > b->second.element_size();
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t position = 0;
  for (const auto* item : order) {
    const Tensor& tensor = item->second;
    const std::uint64_t end = position + tensor.nbytes();
    header[item->first] = {{"dtype", dtype_to_name(tensor.dtype())},
                           {"shape", tensor.shape().vec()},
                           {"data_offsets", {position, end}}};
    position = end;
  }
  std::string json;
  try {
    json = header.dump();
  } catch (const nlohmann::json::exception& error) {
    throw ValueError("safetensors",
                     fmt::format("names and metadata must be UTF-8; got {}", error.what()));
  }
  json.resize((json.size() + 7) / 8 * 8, ' ');
  check(json.size() <= max_header_bytes, "safetensors", "the header must fit 100 MB; got {} bytes",
        json.size());

  const NoGradGuard no_grad;
  AtomicFile file(path);
  const std::uint64_t header_bytes = json.size();
  file.write(&header_bytes, sizeof header_bytes);
  file.write(json);
  for (const auto* item : order) {
    const Tensor data = item->second.cpu().contiguous();
    file.write(data.raw_data(), data.nbytes());
  }
  file.commit();
}

}  // namespace norma::safetensors
