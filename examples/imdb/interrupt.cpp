#include "imdb/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <array>

namespace imdb {
namespace {

struct Handled {
  int signal;
  struct sigaction former;
};

volatile sig_atomic_t pending = 0;
std::array<Handled, 3> handled = {{{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}}};

// Only async-signal-safe calls.
void handle(int signal) {
  if (pending != 0) {
    if (signal == SIGINT) ::_exit(128 + signal);
    return;
  }
  pending = 1;
  constexpr char kMessage[] = "\nStopping and saving; Ctrl-C once more stops at once.\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  pending = 0;
  struct sigaction action = {};
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // a write in progress is finished, not cut short
  for (auto& [signal, former] : handled) {
    ::sigaction(signal, nullptr, &former);
    if (signal == SIGHUP && former.sa_handler == SIG_IGN) continue;
    ::sigaction(signal, &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (const auto& [signal, former] : handled) ::sigaction(signal, &former, nullptr);
}

bool InterruptGuard::requested() const { return pending != 0; }

}  // namespace imdb
