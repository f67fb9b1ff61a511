// The command line of `imdb`.
#pragma once

namespace imdb {

inline constexpr int kExitOk = 0;
inline constexpr int kExitBadInput = 2;  ///< usage, configuration, data or checkpoint
inline constexpr int kExitFailure = 3;   ///< while running: NaN loss, full disk, no memory

/// Runs one command. Never throws: an error is one line on standard error and an exit code.
int run_cli(int argc, const char* const* argv);

}  // namespace imdb
