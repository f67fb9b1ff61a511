#include "norma/ops/backend.h"

#include "norma/core/device_start.h"

#include <array>

namespace norma {

namespace {
std::array<const Backend*, device_type_count>& registry() {
  static std::array<const Backend*, device_type_count> tables{};
  return tables;
}
}  // namespace

const Backend& backend(const Device& device) {
  const Backend*& table = registry()[static_cast<std::size_t>(device.type)];
  if (device.is_cpu()) return table == nullptr ? cpu_backend() : *table;
  if (table == nullptr || device.index != 0) detail::require_device("backend", device);
  return *table;
}

void set_backend(DeviceType type, const Backend* table) {
  registry()[static_cast<std::size_t>(type)] = table;
}

}  // namespace norma
