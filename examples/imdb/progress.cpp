#include "imdb/progress.h"

#include <spdlog/fmt/fmt.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

namespace imdb {
namespace {

constexpr int kDefaultColumns = 80;
constexpr double kRedrawSeconds = 0.1;

int terminal_columns(std::FILE* out) {
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kDefaultColumns;
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view text(value);
    return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos;
  }
  return false;
}

// Most important first: a narrow terminal shows the first ones.
std::vector<std::string> figures(const ProgressState& s) {
  std::vector<std::string> parts;
  if (s.loss >= 0 || std::isnan(s.loss)) parts.push_back(fmt::format("loss {:.4f}", s.loss));
  if (s.accuracy >= 0) parts.push_back(fmt::format("acc {:.1f} %", 100 * s.accuracy));
  if (s.eta_seconds >= 0) parts.push_back("ETA " + format_duration(s.eta_seconds));
  if (s.tokens_per_second >= 0) parts.push_back(format_count(s.tokens_per_second) + " tokens/s");
  return parts;
}

std::string draw_bar(double fraction, int width, bool unicode) {
  std::string bar;
  if (unicode) {
    // Eighths of a block make the bar move smoothly.
    constexpr const char* kEighths[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    const int eighths = static_cast<int>(fraction * width * 8);
    for (int i = 0; i < width; ++i) bar += kEighths[std::clamp(eighths - 8 * i, 0, 8)];
    return "▕" + bar + "▏";
  }
  const int filled = static_cast<int>(fraction * width);
  bar.append(static_cast<std::size_t>(filled), '#');
  bar.append(static_cast<std::size_t>(width - filled), '.');
  return "[" + bar + "]";
}

}  // namespace

std::string format_duration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e7) return "--:--";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string format_count(double count) {
  if (count < 999.5) return fmt::format("{:.0f}", count);
  if (count < 999.95e3) return fmt::format("{:.1f}k", count / 1e3);
  return fmt::format("{:.1f}M", count / 1e6);
}

std::string progress_bar_line(const ProgressState& s, int columns, bool unicode) {
  constexpr int kSmallestBar = 8;
  constexpr int kLargestBar = 32;
  const double fraction =
      s.total > 0 ? std::clamp(static_cast<double>(s.done) / static_cast<double>(s.total), 0.0, 1.0)
                  : 0.0;
  const int usable = columns - 1;  // a full last column makes some terminals wrap
  std::string right = fmt::format(" {:3.0f} %", 100 * fraction);
  // Label and figures are ASCII: their bytes are their columns. The bar adds two edges.
  const int label_width = static_cast<int>(s.label.size()) + 1;
  for (const auto& part : figures(s))
    if (label_width + 2 + kSmallestBar + static_cast<int>(right.size() + part.size()) + 2 <= usable)
      right += "  " + part;
  const int space = usable - label_width - 2 - static_cast<int>(right.size());
  if (space < kSmallestBar)
    return (s.label + right).substr(0, static_cast<std::size_t>(std::max(0, usable)));
  return s.label + " " + draw_bar(fraction, std::min(space, kLargestBar), unicode) + right;
}

std::string progress_plain_line(const ProgressState& s) {
  std::string line = fmt::format("{}  {}/{}", s.label, s.done, s.total);
  for (const auto& part : figures(s)) line += "  " + part;
  return line;
}

Progress::Progress(std::FILE* out, double plain_interval)
    : out_(out),
      terminal_(::isatty(::fileno(out)) != 0),
      unicode_(locale_is_utf8()),
      plain_interval_(plain_interval),
      last_shown_(Clock::now()) {
  if (const char* term = std::getenv("TERM"); term != nullptr && std::string_view(term) == "dumb")
    terminal_ = false;
}

Progress::~Progress() { erase(); }

void Progress::erase() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
  drawn_ = false;
}

void Progress::part_of(std::string prefix, std::function<double(double)> whole) {
  prefix_ = prefix.empty() ? std::string() : std::move(prefix) + "  ";
  whole_ = std::move(whole);
}

void Progress::update(const ProgressState& state) {
  const auto now = Clock::now();
  const double since = std::chrono::duration<double>(now - last_shown_).count();
  last_ = state;
  last_.label = prefix_ + state.label;
  if (whole_ && state.eta_seconds >= 0) last_.eta_seconds = whole_(state.eta_seconds);
  pending_plain_ = true;
  if (terminal_) {
    if (drawn_ && since < kRedrawSeconds && state.done < state.total) return;
    // Erase to the end of the line after writing: less flicker than before.
    std::fprintf(out_, "\r%s\x1b[K",
                 progress_bar_line(last_, terminal_columns(out_), unicode_).c_str());
    drawn_ = true;
  } else {
    if (since < plain_interval_) return;
    std::fprintf(out_, "%s\n", progress_plain_line(last_).c_str());
    pending_plain_ = false;
  }
  std::fflush(out_);
  last_shown_ = now;
}

void Progress::finish() {
  if (terminal_) {
    erase();
  } else if (pending_plain_) {
    std::fprintf(out_, "%s\n", progress_plain_line(last_).c_str());
    std::fflush(out_);
  }
  pending_plain_ = false;
}

void Progress::message(const std::string& line) {
  erase();
  std::fprintf(out_, "%s%s\n", prefix_.c_str(), line.c_str());
  std::fflush(out_);
}

}  // namespace imdb
