#include "norma/ops/threads.h"

#include "norma/core/error.h"

#include <omp.h>

namespace norma {

void set_num_threads(int threads) {
  check<ValueError>(threads >= 1, "set_num_threads", "threads must be at least 1; got {}", threads);
  omp_set_num_threads(threads);
}

int get_num_threads() { return omp_get_max_threads(); }

}  // namespace norma
