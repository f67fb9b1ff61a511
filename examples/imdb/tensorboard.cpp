#include "imdb/tensorboard.h"

#include <unistd.h>

#include <array>
#include <chrono>

#include "tensorboard_event.pb.h"

namespace imdb {
namespace {

namespace proto = norma::imdb::tensorboard;

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0u);
    table[i] = crc;
  }
  return table;
}

constexpr auto kCrcTable = make_crc_table();

// TensorFlow masks, so that the CRC of data that contains a CRC stays a good one.
std::uint32_t masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <class T>
void append_little_endian(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
}

double seconds_since_epoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::filesystem::path new_event_path(const std::filesystem::path& folder) {
  make_directories(folder);
  char host[256] = "localhost";
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  // Microseconds, because a run and its continuation may start within one second.
  return folder /
         fmt::format("events.out.tfevents.{:.6f}.{}.{}", seconds_since_epoch(), host, ::getpid());
}

std::string serialize(proto::Event& event) {
  event.set_wall_time(seconds_since_epoch());
  return tfrecord(event.SerializeAsString());
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (const char c : bytes)
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

std::string tfrecord(std::string_view bytes) {
  std::string record;
  record.reserve(bytes.size() + 16);
  append_little_endian(record, static_cast<std::uint64_t>(bytes.size()));
  append_little_endian(record, masked_crc(std::string_view(record.data(), 8)));
  record += bytes;
  append_little_endian(record, masked_crc(bytes));
  return record;
}

EventWriter::EventWriter(const std::filesystem::path& folder, std::int64_t first_step)
    : file_(new_event_path(folder)) {
  proto::Event version;
  version.set_file_version("brain.Event:2");  // TensorBoard expects it as the first record
  file_.write(serialize(version));
  proto::Event start;
  start.set_step(first_step);
  start.mutable_session_log()->set_status(proto::SessionLog::START);
  file_.write(serialize(start));
  file_.flush();
}

void EventWriter::scalar(std::string_view tag, double value, std::int64_t step) {
  proto::Event event;
  event.set_step(step);
  auto* entry = event.mutable_summary()->add_value();
  entry->set_tag(std::string(tag));
  entry->set_simple_value(static_cast<float>(value));
  file_.write(serialize(event));
}

void EventWriter::text(std::string_view tag, std::string_view markdown, std::int64_t step) {
  constexpr int kStringType = 7;  // tensorflow::DT_STRING
  proto::Event event;
  event.set_step(step);
  auto* entry = event.mutable_summary()->add_value();
  entry->set_tag(std::string(tag));
  entry->mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  auto* tensor = entry->mutable_tensor();
  tensor->set_dtype(kStringType);
  tensor->mutable_tensor_shape()->add_dim()->set_size(1);
  tensor->add_string_val(std::string(markdown));
  file_.write(serialize(event));
}

}  // namespace imdb
