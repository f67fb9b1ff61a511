#include "norma/ops/threads.h"

#include "norma/core/error.h"

#include <omp.h>
#include <unistd.h>

#include <cstdlib>

namespace norma {

void set_num_threads(int threads) {
  check<ValueError>(threads >= 1, "set_num_threads", "threads must be at least 1; got {}", threads);
  omp_set_num_threads(threads);
}

int get_num_threads() { return omp_get_max_threads(); }

void limit_thread_spinning(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "1000", 0);  // a few microseconds
  execv("/proc/self/exe", argv);        // returns only when it failed
}

}  // namespace norma
