#include "norma/core/shape.h"

namespace norma {

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(begin(), end(), ", ")); }

std::int64_t Shape::numel(const char* operation) const {
  std::int64_t product = 1;
  bool empty = false;
  for (const std::int64_t value : *this) {
    if (value == 0)
      empty = true;
    else
      check<ShapeError>(!__builtin_mul_overflow(product, value, &product), operation,
                        "a tensor must have fewer than 2^63 elements; got shape {}", *this);
  }
  return empty ? 0 : product;
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides = shape;
  std::int64_t step = 1;
  for (std::int64_t i = shape.size() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

bool is_contiguous(const Shape& shape, const Shape& strides) {
  std::int64_t step = 1;
  for (std::int64_t i = shape.size() - 1; i >= 0; --i) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* operation) {
  const std::int64_t rank = std::max(a.size(), b.size());
  Shape result = Shape::filled(rank, 1);
  for (std::int64_t i = 1; i <= rank; ++i) {
    const std::int64_t x = i <= a.size() ? a[a.size() - i] : 1;
    const std::int64_t y = i <= b.size() ? b[b.size() - i] : 1;
    check<ShapeError>(x == y || x == 1 || y == 1, operation,
                      "shapes must broadcast (equal, or 1, from the right); got {} and {}, which "
                      "differ in dimension {} from the end; reshape or unsqueeze one of them",
                      a, b, i);
    result[rank - i] = x == 1 ? y : x;
  }
  return result;
}

bool is_expandable_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  for (std::int64_t i = 1; i <= from.size(); ++i) {
    const std::int64_t size = from[from.size() - i];
    if (size != 1 && size != to[to.size() - i]) return false;
  }
  return true;
}

std::int64_t normalize_dim(std::int64_t dim, std::int64_t rank, const char* operation) {
  const std::int64_t bound = std::max<std::int64_t>(rank, 1);
  check<IndexError>(dim >= -bound && dim < bound, operation,
                    "dimension must be in [{}, {}]; got {} for a tensor of {} dimensions", -bound,
                    bound - 1, dim, rank);
  return dim < 0 ? dim + bound : dim;
}

}  // namespace norma
