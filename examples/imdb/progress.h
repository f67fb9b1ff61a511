// Progress of a long loop on standard error: a bar on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

namespace imdb {

/// What a progress line shows.
struct ProgressState {
  std::string label;      ///< "epoch 2/4"
  std::int64_t done = 0;  ///< steps of this loop
  std::int64_t total = 0;
  double loss = -1;      ///< running means; negative: not shown
  double accuracy = -1;  ///< fraction
  double tokens_per_second = -1;
  double eta_seconds = -1;  ///< to the end of the whole run
};

/// "4:07" or "1:02:30"; "--:--" when negative.
std::string format_duration(double seconds);
/// "913", "52.1k", "1.2M".
std::string format_count(double count);

/// One line of at most `columns` columns: label, bar, then as many figures as fit.
std::string progress_bar_line(const ProgressState& state, int columns, bool unicode);
/// The same without a bar, for log files.
std::string progress_plain_line(const ProgressState& state);

/// Shows a loop. On a terminal it redraws one line at most ten times a second; elsewhere it prints
/// a line every `plain_interval` seconds, and one at the end.
class Progress {
 public:
  explicit Progress(std::FILE* out = stderr, double plain_interval = 10);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(const ProgressState& state);
  /// Ends the current loop: erases the bar, or prints the last plain line.
  void finish();
  /// From now on the loops are parts of a longer work: `prefix` ("2/24 A2 seed 1") goes in front of
  /// labels and messages, `whole` turns the seconds left of a part into those left of all.
  void part_of(std::string prefix, std::function<double(double)> whole);
  /// A line of its own above the bar.
  void message(const std::string& line);
  bool is_terminal() const { return terminal_; }

 private:
  using Clock = std::chrono::steady_clock;
  void erase();

  std::FILE* out_;
  bool terminal_;
  bool unicode_;
  double plain_interval_;
  bool drawn_ = false;
  bool pending_plain_ = false;  // the last state was not printed yet
  ProgressState last_;
  std::string prefix_;                   // empty, or ends with a blank
  std::function<double(double)> whole_;  // may be empty
  Clock::time_point last_shown_;
};

}  // namespace imdb
