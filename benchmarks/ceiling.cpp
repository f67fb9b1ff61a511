#include "ceiling.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace norma::benchmarks {
namespace {

double seconds_of(auto&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Keeps the compiler from dropping a value that nobody reads.
void keep(const auto& value) { asm volatile("" : : "g"(&value) : "memory"); }

#ifdef __AVX512F__
constexpr int vector_bytes = 64;
#else
constexpr int vector_bytes = 32;
#endif
using Vector [[gnu::vector_size(vector_bytes)]] = float;

}  // namespace

double copy_bandwidth(std::int64_t bytes) {
  const std::int64_t count = std::max<std::int64_t>(bytes / std::int64_t{sizeof(float)}, 1024);
  std::vector<float> source(count, 1.0f);
  std::vector<float> target(count, 0.0f);
  // About 64 MiB a sample, so that a sample is neither noise nor long.
  const std::int64_t repeats = std::max<std::int64_t>(1, (64 << 20) / (count * 4));
  double best = 0.0;
  for (int sample = 0; sample < 5; ++sample) {
    const double seconds = seconds_of([&] {
      const float* from = source.data();
      float* to = target.data();
#pragma omp parallel firstprivate(from, to)
      for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
#pragma omp for simd schedule(static) nowait
        for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
        keep(to);
      }
    });
    best = std::max(best, 2.0 * static_cast<double>(count * 4 * repeats) / seconds);
  }
  return best;
}

double multiply_add_peak() {
  // Latency 4 and two units need 8 independent accumulators; 12 leave slack and fit 16 registers.
  constexpr int accumulators = 12;
  constexpr std::int64_t steps = 1'000'000;
  double best = 0.0;
  for (int sample = 0; sample < 5; ++sample) {
    const double seconds = seconds_of([] {
#pragma omp parallel
      {
        Vector factor{};
        Vector sums[accumulators]{};
        factor += 0.999f;
        for (Vector& sum : sums) sum += 1.0f;
        for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
          for (Vector& sum : sums) sum = sum * factor + factor;
        }
        for (const Vector& sum : sums) keep(sum);
      }
    });
    const double flops = 2.0 * accumulators * steps * (vector_bytes / 4) * omp_get_max_threads();
    best = std::max(best, flops / seconds);
  }
  return best;
}

}  // namespace norma::benchmarks
