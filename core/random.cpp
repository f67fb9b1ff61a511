#include "norma/core/random.h"

#include <deque>
#include <mutex>

namespace norma {

namespace {

struct Generators {
  std::mutex mutex;
  std::uint64_t seed =
      67280421310721ULL;  // as PyTorch's default_rng_seed_val: runs repeat unless seeded
  Generator cpu{seed};
  std::deque<Generator> cuda;  // a deque keeps references valid while it grows
};

Generators& generators() {
  static Generators instance;
  return instance;
}

}  // namespace

Generator& default_generator(const Device& device) {
  Generators& all = generators();
  if (device.is_cpu()) return all.cpu;
  const std::lock_guard lock(all.mutex);
  while (all.cuda.size() <= static_cast<std::size_t>(device.index)) all.cuda.emplace_back(all.seed);
  return all.cuda[static_cast<std::size_t>(device.index)];
}

void manual_seed(std::uint64_t seed) {
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  all.seed = seed;
  all.cpu.manual_seed(seed);
  for (Generator& generator : all.cuda) generator.manual_seed(seed);
}

}  // namespace norma
