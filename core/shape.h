// Shape: the sizes (or strides) of a tensor, at most eight, held inline.
#pragma once

#include "norma/core/error.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

namespace norma {

/// A short list of int64: sizes, strides, or dimensions. Rank at most `max_rank`.
class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;
  /// One entry: `x.sum(1)` is `x.sum({1})`, `zeros(3)` is `zeros({3})`.
  template <std::integral I>
  // NOLINTNEXTLINE(google-explicit-constructor): a number stands for a shape where one is wanted
  requires(!std::same_as<I, bool>) Shape(I value) : Shape({static_cast<std::int64_t>(value)}) {}
  Shape(std::initializer_list<std::int64_t> values) : Shape(values.begin(), values.end()) {}
  explicit Shape(const std::vector<std::int64_t>& values) : Shape(values.begin(), values.end()) {}
  template <class It>
  Shape(It first, It last) {
    for (; first != last; ++first) push_back(*first);
  }
  /// `rank` entries of `value`.
  static Shape filled(std::int64_t rank, std::int64_t value) {
    Shape shape;
    for (std::int64_t i = 0; i < rank; ++i) shape.push_back(value);
    return shape;
  }

  std::int64_t size() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  std::int64_t operator[](std::int64_t i) const { return values_[static_cast<std::size_t>(i)]; }
  std::int64_t& operator[](std::int64_t i) { return values_[static_cast<std::size_t>(i)]; }
  std::int64_t back() const { return (*this)[rank_ - 1]; }
  std::int64_t& back() { return (*this)[rank_ - 1]; }
  const std::int64_t* begin() const { return values_.data(); }
  const std::int64_t* end() const { return values_.data() + rank_; }
  std::int64_t* begin() { return values_.data(); }
  std::int64_t* end() { return values_.data() + rank_; }

  void push_back(std::int64_t value) {
    check<ShapeError>(rank_ < max_rank, "shape", "a tensor has at most {} dimensions; got more",
                      max_rank);
    values_[static_cast<std::size_t>(rank_++)] = value;
  }
  void pop_back() { --rank_; }
  void insert(std::int64_t position, std::int64_t value) {
    push_back(value);
    std::rotate(begin() + position, end() - 1, end());
  }
  void erase(std::int64_t position) {
    std::copy(begin() + position + 1, end(), begin() + position);
    --rank_;
  }

  /// Product of the entries; 1 for a scalar. Throws ShapeError, naming `operation`, where that of
  /// the entries other than 0 passes 2^63: strides are such products.
  std::int64_t numel(const char* operation = "shape") const;
  std::vector<std::int64_t> vec() const { return {begin(), end()}; }
  /// "[2, 3]".
  std::string str() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<std::int64_t, max_rank> values_{};
  std::int64_t rank_ = 0;
};

inline std::ostream& operator<<(std::ostream& stream, const Shape& shape) {
  return stream << shape.str();
}

/// Row-major strides, in elements.
Shape contiguous_strides(const Shape& shape);
/// Whether (shape, strides) address memory in row-major order without gaps (sizes of 1 do not
/// matter).
bool is_contiguous(const Shape& shape, const Shape& strides);
/// The shape both broadcast to (NumPy rules); throws ShapeError naming `operation`.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* operation);
/// Whether `from` can be expanded to `to`.
bool is_expandable_to(const Shape& from, const Shape& to);
/// `dim` in [-rank, rank) as [0, rank); throws IndexError. A scalar takes 0 and -1.
std::int64_t normalize_dim(std::int64_t dim, std::int64_t rank, const char* operation);

}  // namespace norma

template <>
struct fmt::formatter<norma::Shape> : fmt::formatter<std::string_view> {
  auto format(const norma::Shape& shape, format_context& context) const {
    return fmt::formatter<std::string_view>::format(shape.str(), context);
  }
};
