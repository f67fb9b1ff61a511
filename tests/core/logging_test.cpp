#include "norma/core/logging.h"

#include "norma/core/error.h"
#include "support/catch.h"

namespace norma {
namespace {

TEST_CASE("the logger is silent until asked, and rejects unknown levels", "[logging]") {
  CHECK(logger().name() == "norma");
  CHECK_FALSE(logger().should_log(spdlog::level::critical));
  set_log_level("warn");
  CHECK(logger().should_log(spdlog::level::warn));
  CHECK_FALSE(logger().should_log(spdlog::level::info));
  CHECK_THROWS_WITH(set_log_level("loud"), Catch::Contains("got \"loud\""));
  CHECK(logger().should_log(spdlog::level::warn));
  set_log_level("off");
  CHECK_FALSE(logger().should_log(spdlog::level::critical));
}

}  // namespace
}  // namespace norma
