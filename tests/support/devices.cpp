#include "support/devices.h"

#include "norma/core/device_start.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace norma::test {

namespace {

constexpr std::int64_t emulated_limit = 9000;

/// Says at the end of the program what it left out: once, on stderr, where no reporter's XML is.
struct Emulated {
  long long samples = 0, skipped = 0;
  ~Emulated() {
    if (skipped > 0)
      std::fprintf(stderr,
                   "%lld of %lld samples skipped on the emulated device: above %lld elements they "
                   "take minutes\n",
                   skipped, samples, static_cast<long long>(emulated_limit));
  }
};

}  // namespace

std::vector<Device> devices() {
  const char* const only = std::getenv("NORMA_TEST_DEVICE");
  std::vector<Device> all;
  for (const Device& device : {norma::cpu, cuda(0)})
    if (is_available(device) && (only == nullptr || device.str().rfind(only, 0) == 0))
      all.push_back(device);
  return all;
}

bool takes_too_long([[maybe_unused]] const Device& device, [[maybe_unused]] std::int64_t elements) {
#ifdef NORMA_TEST_ON_GPU
  return false;
#else
  if (!device.is_cuda()) return false;
  static Emulated emulated;
  ++emulated.samples;
  const bool skips = elements > emulated_limit;
  emulated.skipped += skips ? 1 : 0;
  return skips;
#endif
}

}  // namespace norma::test
