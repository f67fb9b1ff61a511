// Device: where a tensor lives.
#pragma once

#include "norma/core/error.h"

#include <ostream>
#include <string>
#include <string_view>

namespace norma {

enum class DeviceType : std::uint8_t { cpu, cuda };
inline constexpr int device_type_count = 2;

/// A device: `cpu`, or `cuda(0)`, `cuda(1)`, ….
struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;
  bool is_cpu() const { return type == DeviceType::cpu; }
  bool is_cuda() const { return type == DeviceType::cuda; }
  friend bool operator==(const Device&, const Device&) = default;
  /// "cpu" or "cuda:0".
  std::string str() const {
    return is_cpu() ? std::string("cpu") : "cuda:" + std::to_string(index);
  }
  /// The device of "cpu", "cuda" or "cuda:1"; throws DeviceError for anything else.
  static Device parse(std::string_view text);
};

inline std::ostream& operator<<(std::ostream& stream, const Device& device) {
  return stream << device.str();
}

inline constexpr Device cpu{};
constexpr Device cuda(int index = 0) { return Device{DeviceType::cuda, index}; }

}  // namespace norma

template <>
struct fmt::formatter<norma::Device> : fmt::formatter<std::string_view> {
  auto format(const norma::Device& device, format_context& context) const {
    return fmt::formatter<std::string_view>::format(device.str(), context);
  }
};
