// The format itself is checked here; tests/imdb/check_tensorboard.py reads the files with the real
// TensorBoard.
#include "imdb/tensorboard.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "../support/catch.h"
#include "support.h"

using namespace imdb;

namespace {

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::uint32_t unmask(std::uint32_t masked) {
  const std::uint32_t rotated = masked - 0xa282ead8u;
  return rotated << 15 | rotated >> 17;
}

// Splits a file into its records and checks both checksums of each.
std::vector<std::string> read_records(std::string_view file) {
  std::vector<std::string> records;
  while (!file.empty()) {
    REQUIRE(file.size() >= 16);
    const auto length = little_endian(file.substr(0, 8));
    REQUIRE(unmask(static_cast<std::uint32_t>(little_endian(file.substr(8, 4)))) ==
            crc32c(file.substr(0, 8)));
    REQUIRE(file.size() >= 16 + length);
    const auto data = file.substr(12, length);
    REQUIRE(unmask(static_cast<std::uint32_t>(little_endian(file.substr(12 + length, 4)))) ==
            crc32c(data));
    records.emplace_back(data);
    file.remove_prefix(16 + length);
  }
  return records;
}

}  // namespace

TEST_CASE("crc32c agrees with the published vectors of RFC 3720") {
  CHECK(crc32c("") == 0u);
  CHECK(crc32c("123456789") == 0xE3069283u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAu);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62A8AB43u);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  CHECK(crc32c(ascending) == 0x46DD794Eu);
}

TEST_CASE("event files are TFRecords that begin with their version") {
  TemporaryFolder folder;
  EventWriter writer(folder.path / "events");
  writer.scalar("train/loss", 0.5, 7);
  writer.text("config", "| a | b |", 0);
  writer.flush();
  const auto records = read_records(read_file(writer.path()));
  REQUIRE(records.size() == 4);
  CHECK(records[0].find("brain.Event:2") != std::string::npos);
  CHECK(records[2].find("train/loss") != std::string::npos);
  CHECK(records[2].find(std::string("\x15\x00\x00\x00\x3f", 5)) !=
        std::string::npos);  // field 2: 0.5f
  CHECK(records[3].find("| a | b |") != std::string::npos);
}

TEST_CASE("the second record of an event file tells from which step on older files are void") {
  TemporaryFolder folder;
  EventWriter writer(folder.path, 300);
  const auto records = read_records(read_file(writer.path()));
  REQUIRE(records.size() == 2);
  // Field 2, step: 300. Field 7, session_log: {1: START}.
  CHECK(records[1].find("\x10\xAC\x02") != std::string::npos);
  CHECK(records[1].find("\x3A\x02\x08\x01") != std::string::npos);
}

TEST_CASE("two writers in one folder do not share a file") {
  TemporaryFolder folder;
  EventWriter first(folder.path), second(folder.path);
  CHECK(first.path() != second.path());
}

// Leaves a file for check_tensorboard.py; does nothing unless asked for by name.
TEST_CASE("write an event file for the real reader", "[.tensorboard]") {
  const char* folder = std::getenv("IMDB_EVENTS");
  REQUIRE(folder != nullptr);
  EventWriter writer(folder);
  for (int step = 1; step <= 100; ++step) writer.scalar("train/loss", 1.0 / step, step);
  writer.text("config", "**bold** `text` \xC3\xA9", 3);
  writer.flush();
  if (std::getenv("IMDB_EVENTS_RESUME") == nullptr) return;
  // Killed after step 100, resumed from a checkpoint at 60.
  EventWriter second(folder, 61);
  for (int step = 61; step <= 80; ++step) second.scalar("train/loss", -1.0 / step, step);
  second.flush();
}
