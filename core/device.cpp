#include "norma/core/device.h"

#include "norma/core/device_start.h"

#include <charconv>

namespace norma {

Device Device::parse(std::string_view text) {
  if (text == "cpu") return norma::cpu;
  if (text == "cuda") return norma::cuda(0);
  if (text.starts_with("cuda:")) {
    const std::string_view digits = text.substr(5);
    int index = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error == std::errc{} && end == digits.data() + digits.size() && index >= 0)
      return norma::cuda(index);
  }
  throw DeviceError("device", fmt::format("must be cpu, cuda or cuda:N; got \"{}\"", text));
}

bool is_available(const Device& device) {
  return device.is_cpu() || (device.index == 0 && detail::start_cuda().empty());
}

void detail::require_device(const char* operation, const Device& device) {
  if (device.is_cpu()) return;
  const std::string reason = start_cuda();
  check<DeviceError>(reason.empty(), operation,
                     "the device must have a backend; got {}, and {}; use cpu", device, reason);
  check<DeviceError>(device.index == 0, operation, "the device must exist; got {}; use cuda:0",
                     device);
}

}  // namespace norma
