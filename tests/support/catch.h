// Catch2 v2 and v3 behind one include.
#pragma once
#ifdef NORMA_CATCH2_V3
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
