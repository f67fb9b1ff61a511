// Ctrl-C and SIGTERM as a request: the loop finishes its step, saves and returns.
#pragma once

namespace imdb {

/// While it lives, the first SIGINT or SIGTERM only sets a flag; the second ends the process at
/// once with the signal's usual exit status (128 + signal). Restores the former handlers when
/// destroyed.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Whether a signal has arrived since the guard was made.
  bool requested() const;
};

}  // namespace imdb
