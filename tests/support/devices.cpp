#include "support/devices.h"

#include "norma/core/device_start.h"

#include <cstdlib>
#include <string>

namespace norma::test {

std::vector<Device> devices() {
  const char* const only = std::getenv("NORMA_TEST_DEVICE");
  std::vector<Device> all;
  for (const Device& device : {norma::cpu, cuda(0)})
    if (is_available(device) && (only == nullptr || device.str().rfind(only, 0) == 0))
      all.push_back(device);
  return all;
}

bool takes_too_long(const Device& device, std::int64_t elements) {
#ifdef NORMA_TEST_ON_GPU
  constexpr bool emulated = false;
#else
  constexpr bool emulated = true;
#endif
  return emulated && device.is_cuda() && elements > 9000;
}

}  // namespace norma::test
