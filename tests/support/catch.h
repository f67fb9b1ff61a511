// Catch2 v2 and v3 behind one include.
#pragma once
#ifdef NORMA_CATCH2_V3
#include <catch2/catch_all.hpp>

#include <string>
// What v2 calls Catch::Contains.
namespace Catch {
inline auto Contains(const std::string& text) { return Matchers::ContainsSubstring(text); }
}  // namespace Catch
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
