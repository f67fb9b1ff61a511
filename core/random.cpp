#include "norma/core/random.h"

#include "norma/core/error.h"

#include <map>
#include <mutex>

namespace norma {

namespace {

struct Generators {
  std::mutex mutex;
  std::uint64_t seed =
      67280421310721ULL;  // as PyTorch's default_rng_seed_val: runs repeat unless seeded
  Generator cpu{seed};
  std::map<int, Generator> cuda;  // by index; its references stay valid
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
  check<DeviceError>(device.index >= 0, "default_generator",
                     "the index of a device must be at least 0; got {}", device.index);
  return all.cuda.try_emplace(device.index, all.seed).first->second;
}

void manual_seed(std::uint64_t seed) {
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  all.seed = seed;
  all.cpu.manual_seed(seed);
  for (auto& [index, generator] : all.cuda) generator.manual_seed(seed);
}

}  // namespace norma
