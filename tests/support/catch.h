// Catch2 v2 and v3 behind one include.
#pragma once
#ifdef NORMA_CATCH2_V3
#include <catch2/catch_all.hpp>

#include <string>
// What v2 calls Contains and Approx.
namespace Catch {
namespace Matchers {
inline auto Contains(const std::string& text) { return ContainsSubstring(text); }
inline auto Contains(const char* text) { return ContainsSubstring(text); }
}  // namespace Matchers
}  // namespace Catch
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
