// Whether the tests run under AddressSanitizer, where everything takes many times as long.
#pragma once

#include "support/op_table.h"

namespace norma::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
inline constexpr bool sanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool sanitized = false;
#endif

/// Under sanitizers large samples run in float32 alone: the other types go the same ways through
/// memory, and have their own in the small ones.
inline bool too_long_when_sanitized(const OpSample& sample, DType dtype) {
  return sanitized && sample.large && dtype != float32;
}

}  // namespace norma::test
