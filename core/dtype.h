// DType: element types, their promotion as in PyTorch, and dispatch from a run-time dtype to a
// type.
#pragma once

#include "norma/core/error.h"
#include "norma/core/half.h"

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <type_traits>

namespace norma {

/// Element type of a tensor. The order is the order of promotion within and across categories.
enum class DType : std::uint8_t { bool_, int32, int64, float16, bfloat16, float32, float64 };

inline constexpr DType bool_ = DType::bool_;
inline constexpr DType int32 = DType::int32;
inline constexpr DType int64 = DType::int64;
inline constexpr DType float16 = DType::float16;
inline constexpr DType bfloat16 = DType::bfloat16;
inline constexpr DType float32 = DType::float32;
inline constexpr DType float64 = DType::float64;

/// "float32", "bool", …: the name PyTorch prints after "torch.".
std::string_view dtype_name(DType dtype);
/// Bytes of one element.
std::size_t element_size(DType dtype);

constexpr bool is_floating_point(DType dtype) { return dtype >= DType::float16; }
constexpr bool is_integral(DType dtype) { return dtype == DType::int32 || dtype == DType::int64; }

/// Whether a result of dtype `from` may be written into a tensor of dtype `to`: not into one of a
/// lower category (bool < integer < floating point). As torch.can_cast.
constexpr bool can_cast(DType from, DType to) {
  const auto category = [](DType dtype) {
    return dtype == DType::bool_ ? 0 : is_integral(dtype) ? 1 : 2;
  };
  return category(from) <= category(to);
}

/// The dtype of an operation on both: the higher category wins (bool < integer < floating point),
/// then the wider type; float16 with bfloat16 gives float32. As torch.promote_types.
DType promote_types(DType a, DType b);

/// The DType of a C++ type: `dtype_of<float>`.
template <class T>
inline constexpr DType dtype_of = [] {
  if constexpr (std::is_same_v<T, bool>)
    return DType::bool_;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return DType::int32;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return DType::int64;
  else if constexpr (std::is_same_v<T, Half>)
    return DType::float16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::bfloat16;
  else if constexpr (std::is_same_v<T, float>)
    return DType::float32;
  else {
    static_assert(std::is_same_v<T, double>, "no norma dtype for this C++ type");
    return DType::float64;
  }
}();

/// The type in which values of T are computed and accumulated: float for 16-bit floats, double for
/// double, int64 for bool and integers.
template <class T>
using accumulate_t =
    std::conditional_t<std::is_same_v<T, double>, double,
                       std::conditional_t<std::is_integral_v<T>, std::int64_t, float>>;

template <class T>
struct TypeTag {
  using type = T;
};

/// Calls `f(TypeTag<T>{})` with the C++ type of a floating-point dtype.
///
///     visit_floating(x.dtype(), "exp", [&]<class T>(TypeTag<T>) { kernel(x.data<T>()); });
template <class F>
decltype(auto) visit_floating(DType dtype, const char* operation, F&& f) {
  switch (dtype) {
    case DType::float32:
      return f(TypeTag<float>{});
    case DType::float64:
      return f(TypeTag<double>{});
    case DType::float16:
      return f(TypeTag<Half>{});
    case DType::bfloat16:
      return f(TypeTag<BFloat16>{});
    default:
      break;
  }
  throw DTypeError(operation,
                   fmt::format("needs a floating-point tensor; got {}; convert with .to(float32)",
                               dtype_name(dtype)));
}

/// Calls `f(TypeTag<T>{})` with the C++ type of any dtype.
template <class F>
decltype(auto) visit_all(DType dtype, F&& f) {
  switch (dtype) {
    case DType::bool_:
      return f(TypeTag<bool>{});
    case DType::int32:
      return f(TypeTag<std::int32_t>{});
    case DType::int64:
      return f(TypeTag<std::int64_t>{});
    case DType::float16:
      return f(TypeTag<Half>{});
    case DType::bfloat16:
      return f(TypeTag<BFloat16>{});
    case DType::float32:
      return f(TypeTag<float>{});
    case DType::float64:
      break;
  }
  return f(TypeTag<double>{});
}

inline std::ostream& operator<<(std::ostream& stream, DType dtype) {
  return stream << dtype_name(dtype);
}

}  // namespace norma

template <>
struct fmt::formatter<norma::DType> : fmt::formatter<std::string_view> {
  auto format(norma::DType dtype, format_context& context) const {
    return fmt::formatter<std::string_view>::format(norma::dtype_name(dtype), context);
  }
};
