#include "imdb/interrupt.h"

#include <signal.h>
#include <unistd.h>

namespace imdb {
namespace {

volatile sig_atomic_t pending = 0;
struct sigaction former_int, former_term;

// Only async-signal-safe calls.
void handle(int signal) {
  if (pending != 0) ::_exit(128 + signal);
  pending = 1;
  constexpr char kMessage[] = "\nStopping after this step and saving; once more stops at once.\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  pending = 0;
  struct sigaction action = {};
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // a write in progress is finished, not cut short
  ::sigaction(SIGINT, &action, &former_int);
  ::sigaction(SIGTERM, &action, &former_term);
}

InterruptGuard::~InterruptGuard() {
  ::sigaction(SIGINT, &former_int, nullptr);
  ::sigaction(SIGTERM, &former_term, nullptr);
}

bool InterruptGuard::requested() const { return pending != 0; }

}  // namespace imdb
