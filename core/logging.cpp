#include "norma/core/logging.h"

#include "norma/core/error.h"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <cstdlib>

namespace norma {

namespace {

spdlog::level::level_enum parse_level(const std::string& name) {
  // spdlog's own parser answers "off" for anything it does not know.
  const spdlog::level::level_enum level = spdlog::level::from_str(name);
  check(level != spdlog::level::off || name == "off", "set_log_level",
        "the level must be trace, debug, info, warn, error, critical or off; got \"{}\"", name);
  return level;
}

}  // namespace

spdlog::logger& logger() {
  // Never destroyed, and not in spdlog's registry: tensors in static storage may outlive both.
  static spdlog::logger& instance = []() -> spdlog::logger& {
    auto& created =
        *new spdlog::logger("norma", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    const char* level = std::getenv("NORMA_LOG");
    created.set_level(spdlog::level::from_str(level != nullptr ? level : "off"));
    return created;
  }();
  return instance;
}

void set_log_level(const std::string& level) { logger().set_level(parse_level(level)); }

}  // namespace norma
