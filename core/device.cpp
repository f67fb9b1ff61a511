#include "norma/core/device.h"

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

}  // namespace norma
