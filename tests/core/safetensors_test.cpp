#include "norma/core/safetensors.h"

#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "support/catch.h"
#include "support/temporary_folder.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace norma {
namespace {

using Catch::Contains;
using test::TemporaryFolder;

// The tensors of check_safetensors.py.
std::map<std::string, Tensor> reference_tensors() {
  std::vector<double> count(6);
  std::vector<double> sevenths(6);
  std::vector<std::int64_t> large(6);
  for (std::size_t i = 0; i < 6; ++i) {
    count[i] = static_cast<double>(i);
    sevenths[i] = static_cast<double>(i) / 7;
    large[i] = static_cast<std::int64_t>(i) * 1'000'000'000'000'000 - 1;
  }
  const auto values = [&](DType dtype) { return from_values(sevenths, {2, 3}, {.dtype = dtype}); };
  const float infinity = std::numeric_limits<float>::infinity();
  return {
      {"f64", values(float64)},
      {"f32", values(float32)},
      {"f16", values(float16)},
      {"bf16", values(bfloat16)},
      {"i64", from_values(large, {2, 3})},
      {"i32", from_values(std::vector<int>{-3, -2, -1, 0, 1, 2}, {2, 3})},
      {"bool", from_values(std::vector<double>{1, 0, 1, 0, 1, 0}, {2, 3}, {.dtype = bool_})},
      {"scalar", tensor(2.5)},
      {"empty", zeros({0, 4})},
      {"extremes",
       from_values(std::vector<float>{infinity, -infinity, 1e-45F, 3.4028234663852886e38F}, {4})},
      {"layer.0.weight ü", ones({1, 1, 2})},
  };
}
const safetensors::Metadata reference_metadata = {{"format", "pt"},
                                                  {"note", "quotes \" and ünïcode"}};

void require_same(const Tensor& a, const Tensor& b) {
  REQUIRE(a.dtype() == b.dtype());
  REQUIRE(a.shape() == b.shape());
  // Bytes, so that rounding and NaN are seen, too.
  if (a.numel() > 0) REQUIRE(std::memcmp(a.raw_data(), b.raw_data(), a.nbytes()) == 0);
}

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream bytes;
  bytes << stream.rdbuf();
  return bytes.str();
}
void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
/// A file of this header and so many bytes of data.
std::string file_bytes(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\0');
}

TEST_CASE("a file of the Python library is read", "[safetensors]") {
  const auto [tensors, metadata] =
      safetensors::load_file(std::string(NORMA_TEST_DATA) + "/python_written.safetensors");
  CHECK(metadata == reference_metadata);
  const auto expected = reference_tensors();
  REQUIRE(tensors.size() == expected.size());
  for (const auto& [name, tensor] : expected) {
    CAPTURE(name);
    REQUIRE(tensors.contains(name));
    require_same(tensors.at(name), tensor);
  }
}

TEST_CASE("what is written is read again", "[safetensors]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "norma_written.safetensors";
  safetensors::save_file(reference_tensors(), path, reference_metadata);
  const auto [tensors, metadata] = safetensors::load_file(path);
  CHECK(metadata == reference_metadata);
  REQUIRE(tensors.size() == reference_tensors().size());
  for (const auto& [name, tensor] : reference_tensors()) require_same(tensors.at(name), tensor);
}

// Leaves a file for check_safetensors.py; does nothing unless asked for by name.
TEST_CASE("write a safetensors file for the Python library", "[.python]") {
  const char* path = std::getenv("NORMA_SAFETENSORS");
  REQUIRE(path != nullptr);
  safetensors::save_file(reference_tensors(), path, reference_metadata);
}

TEST_CASE("data are aligned, contiguous, and in the order of their element size", "[safetensors]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "file.safetensors";
  const Tensor matrix = arange(6, {.dtype = float64}).reshape({2, 3});
  safetensors::save_file(
      {{"flag", ones({3}, {.dtype = bool_})}, {"t", matrix.t()}, {"tail", matrix.narrow(1, 1, 2)}},
      path);
  const safetensors::Reader reader(path);
  REQUIRE(reader.entries().size() == 3);
  CHECK(reader.entries()[0].name == "t");
  CHECK(reader.entries()[2].name == "flag");
  std::uint64_t header_length = 0;
  std::memcpy(&header_length, read_bytes(path).data(), 8);
  CHECK(header_length % 8 == 0);
  CHECK(reader.load("t").shape() == Shape{3, 2});
  CHECK(reader.load("t").to_vector<double>() == std::vector<double>{0, 3, 1, 4, 2, 5});
  CHECK(reader.load("tail").to_vector<double>() == std::vector<double>{1, 2, 4, 5});
  CHECK_FALSE(reader.contains("head"));
  CHECK_THROWS_WITH(reader.load("head"), Contains("must hold \"head\""));
}

TEST_CASE("a file without tensors is a file", "[safetensors]") {
  const TemporaryFolder folder;
  safetensors::save_file(safetensors::NamedTensors{}, folder.path() / "none.safetensors");
  CHECK(safetensors::load_file(folder.path() / "none.safetensors").tensors.empty());
}

TEST_CASE("hostile headers are refused with the reason", "[safetensors]") {
  struct Case {
    std::string header;
    std::size_t data_bytes;
    const char* message;
  };
  const auto one = [](const char* fields) { return std::string("{\"a\":{") + fields + "}}"; };
  const std::string wide = one(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4])");
  const std::string nested(10000, '[');
  const Case test = GENERATE_REF(values<Case>({
      {"", 0, "must be JSON"},
      {"{\"a\":", 0, "must be JSON"},
      {"{} x", 0, "must be JSON"},
      {"{\"\xff\":{}}", 0, "must be JSON"},
      {"[]", 0, "must hold an object"},
      {"7", 0, "must hold an object"},
      {"null", 0, "must hold an object"},
      {nested, 0, "must hold an object"},
      {R"({"a":[]})", 0, "an object for each name"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
          "a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8, "\"a\" twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "\"__metadata__\" twice"},
      {R"({"__metadata__":{"x":"1","x":"2"}})", 0, "\"x\" twice"},
      {R"({"__metadata__":{"x":1}})", 0, "strings in __metadata__"},
      {R"({"__metadata__":{"x":{}}})", 0, "strings in __metadata__"},
      {R"({"a":{"dtype":"F32","dtype":"F64","shape":[1],"data_offsets":[0,4]}})", 4,
       "\"dtype\" twice"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "without one of them"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})", 4, "got \"more\""},
      {R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1, "got \"F8_E4M3\""},
      {R"({"a":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})", 4, "a string for dtype"},
      {R"({"a":{"dtype":"F32","shape":"1","data_offsets":[0,4]}})", 4, "arrays for the rest"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "must not be negative"},
      {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, "must be integers"},
      {R"({"a":{"dtype":"F32","shape":[1e30],"data_offsets":[0,4]}})", 4, "must be integers"},
      {R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4, "must hold integers"},
      {R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]}})", 4,
       "must fit 63 bits"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
       "must fit 64 bits"},
      {wide, 4, "at most 8 dimensions"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 8, "must be two numbers"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4, "must not be negative"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "must lie in"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, "must lie in the 4 bytes"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "must agree"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
          "b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
       12, "without overlap"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
          "b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
       12, "without holes"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "without holes"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5, "must cover all data"},
      {"{}", 1, "must cover all data"},
  }));
  CAPTURE(test.header);
  const TemporaryFolder folder;
  const auto path = folder.path() / "bad.safetensors";
  write_bytes(path, file_bytes(test.header, test.data_bytes));
  REQUIRE_THROWS_AS(safetensors::load_file(path), FileError);
  REQUIRE_THROWS_WITH(safetensors::load_file(path),
                      Contains("bad.safetensors") && Contains(test.message));
}

TEST_CASE("truncated files and absurd lengths are refused", "[safetensors]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "bad.safetensors";
  const auto reason = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    try {
      safetensors::load_file(path);
    } catch (const FileError& error) {
      return std::string(error.what());
    }
    return std::string("nothing thrown");
  };
  safetensors::save_file({{"a", ones({10})}}, path);
  const std::string good = read_bytes(path);
  for (std::size_t length = 0; length < good.size(); ++length)
    REQUIRE(reason(good.substr(0, length)) != "nothing thrown");
  CHECK_THAT(reason(good.substr(0, 5)), Contains("truncated"));
  CHECK_THAT(reason(good.substr(0, 20)), Contains("must fit the file"));
  CHECK_THAT(reason(good.substr(0, good.size() - 1)), Contains("truncated"));
  CHECK_THAT(reason(good + "x"), Contains("must cover all data"));
  CHECK_THAT(reason(std::string(8, '\xff')), Contains("18446744073709551615"));
  CHECK_THAT(reason(std::string("\xff\xff\xff\x7f\0\0\0\0{}", 10)), Contains("100 MB"));
  // A bool that is neither false nor true.
  std::string header = R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})";
  std::string bytes = file_bytes(header, 1);
  bytes.back() = '\x02';
  CHECK_THAT(reason(bytes), Contains("must be 0 or 1; got 2"));

  CHECK_THROWS_WITH(safetensors::load_file(folder.path() / "missing"), Contains("No such file"));
  CHECK_THROWS_WITH(safetensors::load_file(folder.path()), Contains("regular file"));
}

TEST_CASE("random damage never does more than throw FileError", "[safetensors]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "file.safetensors";
  safetensors::save_file(reference_tensors(), path, reference_metadata);
  const std::string good = read_bytes(path);
  Generator generator(7);
  for (int round = 0; round < 500; ++round) {
    std::string bytes = good;
    for (int change = 0; change < 3; ++change) {
      const PhiloxState state = generator.reserve(4);
      const std::size_t position = philox_word(state, 0) % 1100;  // mostly the header
      bytes[position % bytes.size()] = static_cast<char>(philox_word(state, 1));
    }
    write_bytes(path, bytes);
    try {
      safetensors::load_file(path);
    } catch (const FileError&) {
    }
  }
}

TEST_CASE("save_file refuses what no file can hold", "[safetensors]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "file.safetensors";
  CHECK_THROWS_WITH(safetensors::save_file({{"a", Tensor()}}, path), Contains("undefined"));
  CHECK_THROWS_WITH(safetensors::save_file({{"a", ones({1})}, {"a", ones({1})}}, path),
                    Contains("\"a\" twice"));
  CHECK_THROWS_WITH(safetensors::save_file({{"__metadata__", ones({1})}}, path),
                    Contains("__metadata__"));
  CHECK_THROWS_AS(safetensors::save_file({{"\xff", ones({1})}}, path), ValueError);
  CHECK_THROWS_AS(safetensors::save_file({{"a", ones({1})}}, folder.path() / "no" / "folder"),
                  FileError);
  CHECK(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace norma
