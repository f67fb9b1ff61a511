// Logging: what the library tells about its own work. Silent unless asked.
#pragma once

#include <spdlog/logger.h>

#include <memory>

namespace norma {

/// The library's logger, "norma", to standard error; its level is off until set_log_level. Programs
/// may attach sinks of their own.
spdlog::logger& logger();

/// Shows messages of `level` ("trace", "debug", "info", "warn", "error", "critical", "off") and
/// above. Throws ValueError for another name. The environment variable NORMA_LOG sets the level at
/// start.
void set_log_level(const std::string& level);

}  // namespace norma
