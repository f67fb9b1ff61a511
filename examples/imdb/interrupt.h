// Ctrl-C, SIGTERM and SIGHUP as a request: the loop finishes its step, saves and returns.
#pragma once

namespace imdb {

/// While it lives, these signals only set a flag. A SIGINT after that ends the process at once with
/// its usual exit status (128 + signal): someone presses Ctrl-C again. The others are sent twice
/// without meaning more by it (a closing terminal, timeout(1)). SIGHUP stays ignored where it was,
/// for nohup. Restores the former handlers when destroyed.
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
