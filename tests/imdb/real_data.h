#pragma once

#include <cstdlib>

#include "../support/catch.h"

/// The official archive for a [real] case, or null after the text that makes CTest say "Skipped".
inline const char* real_data() {
  const char* path = std::getenv("NORMA_IMDB_DATA");
  if (path == nullptr) WARN("skipped: set NORMA_IMDB_DATA to aclImdb_v1.tar.gz");
  return path;
}
