#include "norma/core/dtype.h"

#include <algorithm>

namespace norma {

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::bool_:
      return "bool";
    case DType::int32:
      return "int32";
    case DType::int64:
      return "int64";
    case DType::float16:
      return "float16";
    case DType::bfloat16:
      return "bfloat16";
    case DType::float32:
      return "float32";
    case DType::float64:
      break;
  }
  return "float64";
}

std::size_t element_size(DType dtype) {
  return visit_all(dtype, []<class T>(TypeTag<T>) { return sizeof(T); });
}

DType promote_types(DType a, DType b) {
  const DType low = std::min(a, b);
  const DType high = std::max(a, b);
  // Neither 16-bit type holds the other's values.
  if (low == DType::float16 && high == DType::bfloat16) return DType::float32;
  return high;
}

}  // namespace norma
