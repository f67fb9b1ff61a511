// Thread-local modes of the tape, as RAII guards: they end with their scope, also by an exception.
#pragma once

namespace norma {

/// Whether operations on this thread are recorded. On by default.
struct GradMode {
  static bool is_enabled();
  static void set_enabled(bool enabled);
};

/// Sets the mode for a scope.
class GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled) : previous_(GradMode::is_enabled()) {
    GradMode::set_enabled(enabled);
  }
  ~GradModeGuard() { GradMode::set_enabled(previous_); }
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool previous_;
};

/// `NoGradGuard no_grad;`: nothing in this scope is recorded.
struct NoGradGuard : GradModeGuard {
  NoGradGuard() : GradModeGuard(false) {}
};
/// Recording again inside of a NoGradGuard.
struct EnableGradGuard : GradModeGuard {
  EnableGradGuard() : GradModeGuard(true) {}
};

/// Whether every result, forward and backward, is searched for NaN and Inf (slow; for debugging).
struct AnomalyMode {
  static bool is_enabled();
  static void set_enabled(bool enabled);
};

/// `DetectAnomalyGuard guard;`: the first operation in this scope that makes a NaN, or an infinity
/// of finite values, throws AutogradError with its name; so does the first backward, and the first
/// operation that gets a NaN. An infinity that was given is passed on: masks are made of it.
class DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool enabled = true) : previous_(AnomalyMode::is_enabled()) {
    AnomalyMode::set_enabled(enabled);
  }
  ~DetectAnomalyGuard() { AnomalyMode::set_enabled(previous_); }
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;
  DetectAnomalyGuard& operator=(const DetectAnomalyGuard&) = delete;

 private:
  bool previous_;
};

}  // namespace norma
