#include "norma/ops/backend.h"

#include <array>

namespace norma {

namespace {
std::array<const Backend*, device_type_count>& registry() {
  static std::array<const Backend*, device_type_count> tables{};
  return tables;
}
}  // namespace

const Backend& backend(const Device& device) {
  if (device.is_cpu()) return cpu_backend();
  const Backend* table = registry()[static_cast<std::size_t>(device.type)];
  check<DeviceError>(
      table != nullptr, "backend",
      "the device must have a backend; got {}, and this program was built without one; "
      "use cpu, or configure norma with -DNORMA_CUDA=ON (or EMULATE)",
      device);
  return *table;
}

void set_backend(DeviceType type, const Backend* table) {
  registry()[static_cast<std::size_t>(type)] = table;
}

}  // namespace norma
