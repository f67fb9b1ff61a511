// The command line of `imdb`, and what every program does around its own.
#pragma once

namespace CLI {
class App;
}

namespace imdb {

inline constexpr int kExitOk = 0;
inline constexpr int kExitBadInput = 2;  ///< usage, configuration, data or checkpoint
inline constexpr int kExitFailure = 3;   ///< while running: NaN loss, full disk, no memory

/// Parses the command line with `app`, whose callbacks run the command. Never throws: an error is
/// one line on standard error, with the program's name, and an exit code.
int run_app(CLI::App& app, int argc, const char* const* argv);

/// Runs one command of `imdb`, as run_app.
int run_cli(int argc, const char* const* argv);

}  // namespace imdb
