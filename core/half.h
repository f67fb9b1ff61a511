// Half and BFloat16: 16-bit storage types that compute as float.
#pragma once

#include <bit>
#include <cstdint>

namespace norma {

namespace detail {

/// IEEE binary16 bits of `value`, round to nearest even.
inline std::uint16_t half_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);   // NaN
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65520
  if (magnitude < 0x38800000u) {  // subnormal: let the float adder round for us
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

/// The float with the value of binary16 `bits`.
inline float float_from_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
    const float value = static_cast<float>(mantissa) * 5.9604644775390625e-8F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  const std::uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

}  // namespace detail

/// IEEE binary16: 11 significant bits, largest finite value 65504.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  Half(float value) : bits(detail::half_from_float(value)) {}  // NOLINT: converts like a number
  operator float() const { return detail::float_from_half(bits); }  // NOLINT
};

/// bfloat16: the upper half of a float, 8 significant bits, round to nearest even.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float value) {  // NOLINT: converts like a number
    const std::uint32_t b = std::bit_cast<std::uint32_t>(value);
    const bool nan = (b & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? static_cast<std::uint16_t>((b >> 16) | 0x40u)
               : static_cast<std::uint16_t>((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
  }
  operator float() const {  // NOLINT
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

}  // namespace norma
