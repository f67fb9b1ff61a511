// parallel_for: loops over a range on the OpenMP team that the matrix product library uses, too.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <exception>

namespace norma {

/// Work in elements below which a loop stays on one thread: starting the team costs more than the
/// work.
inline constexpr std::int64_t parallel_grain = 32768;

/// Runs `body`, compiled once: inlined into the serial and the parallel path the compiler may
/// contract a * b + c in one and not in the other, and the last bit of a result would depend on the
/// number of threads.
template <class Body>
#if defined(__GNUC__) && !defined(__clang__)
[[gnu::noipa]]
#else
[[gnu::noinline]]
#endif
void run_chunk(Body body, std::int64_t begin, std::int64_t end) {
  body(begin, end);
}

/// Calls `body(begin, end)` on disjoint chunks that cover [0, count). `cost` is the work of one
/// item in elements. Which thread runs which chunk must not change the result. An exception of the
/// body reaches the caller.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t cost, const Body& body) {
  if (count <= 0) return;
  const std::int64_t threads = std::min<std::int64_t>(
      {omp_get_max_threads(), count, count * std::max<std::int64_t>(cost, 1) / parallel_grain});
  if (threads <= 1 || omp_in_parallel()) {
    run_chunk(body, 0, count);
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    const std::int64_t team = omp_get_num_threads();
    const std::int64_t rank = omp_get_thread_num();
    const std::int64_t begin = count * rank / team;
    const std::int64_t end = count * (rank + 1) / team;
    try {
      if (begin < end) run_chunk(body, begin, end);
    } catch (...) {  // none may leave a parallel region
#pragma omp critical(norma_parallel_for_failure)
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace norma
