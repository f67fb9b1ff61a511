#include "imdb/sample.h"

#include "../support/catch.h"

TEST_CASE("the built-in sample is a gzip file of the committed size") {
  const std::string_view bytes = imdb::sample_archive();
  REQUIRE(bytes.size() == 1168888);
  CHECK(static_cast<unsigned char>(bytes[0]) == 0x1f);
  CHECK(static_cast<unsigned char>(bytes[1]) == 0x8b);
}
