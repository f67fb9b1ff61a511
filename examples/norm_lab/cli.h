// The command line of norm_lab.
#pragma once

namespace norm_lab {

/// Runs what the arguments say; the exit code is 0, 2 for bad input or usage, 3 for a failure while
/// running.
int run_cli(int argc, const char* const* argv);

}  // namespace norm_lab
