// Printing of tensors, after PyTorch's look; numbers are as short as their digits allow.
#include "norma/core/grad_mode.h"
#include "norma/core/node.h"
#include "norma/core/tensor.h"

#include <algorithm>
#include <cmath>
#include <ostream>

namespace norma {

namespace {

constexpr std::int64_t abbreviate_above = 1000;  // elements
constexpr std::int64_t edge_items = 3;           // shown at each end of an abbreviated dimension
constexpr std::size_t line_width = 80;
constexpr int precision = 4;

/// How the values of one tensor are written, so that columns align: all as integers, fixed or
/// scientific.
class Format {
 public:
  Format(const Tensor& tensor, const std::vector<std::int64_t>& offsets) : tensor_(tensor) {
    if (tensor.is_floating_point()) choose_notation(offsets);
    for (const std::int64_t offset : offsets) width_ = std::max(width_, text(offset).size());
  }

  std::size_t width() const { return width_; }
  std::string padded(std::int64_t offset) const {
    return fmt::format("{:>{}}", text(offset), width_);
  }

  /// The element at `offset` from the first.
  std::string text(std::int64_t offset) const {
    return visit_all(tensor_.dtype(), [&]<class T>(TypeTag<T>) {
      const T value = static_cast<const T*>(tensor_.raw_data())[offset];
      if constexpr (std::is_same_v<T, bool>)
        return std::string(value ? "True" : "False");
      else if constexpr (std::is_integral_v<T>)
        return fmt::format("{}", value);
      else
        return real_text(static_cast<double>(value));
    });
  }

 private:
  enum class Notation { integer, fixed, scientific };

  std::string real_text(double value) const {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    if (notation_ == Notation::scientific) return fmt::format("{:.{}e}", value, precision);
    if (notation_ == Notation::integer) return fmt::format("{:.0f}.", value);
    return fmt::format("{:.{}f}", value, precision);
  }

  void choose_notation(const std::vector<std::int64_t>& offsets) {
    bool integers = true;
    double smallest = std::numeric_limits<double>::infinity();
    double largest = 0;
    for (const std::int64_t offset : offsets) {
      const double value = visit_all(tensor_.dtype(), [&]<class T>(TypeTag<T>) {
        return static_cast<double>(static_cast<const T*>(tensor_.raw_data())[offset]);
      });
      if (!std::isfinite(value) || value == 0) continue;
      integers = integers && value == std::nearbyint(value);
      smallest = std::min(smallest, std::abs(value));
      largest = std::max(largest, std::abs(value));
    }
    if (largest >= 1e8 || (!integers && (smallest < 1e-4 || largest / smallest > 1000)))
      notation_ = Notation::scientific;
    else
      notation_ = integers ? Notation::integer : Notation::fixed;
  }

  const Tensor& tensor_;
  Notation notation_ = Notation::integer;
  std::size_t width_ = 0;
};

/// Writes the nested brackets of one tensor on the CPU.
class Writer {
 public:
  explicit Writer(const Tensor& tensor)
      : tensor_(tensor),
        abbreviated_(tensor.numel() > abbreviate_above),
        format_(tensor, shown_offsets()) {}

  std::string write(std::size_t indent) const {
    if (tensor_.dim() == 0) return format_.text(0);
    return block(0, 0, indent);
  }

 private:
  bool is_cut(std::int64_t dim) const { return abbreviated_ && tensor_.size(dim) > 2 * edge_items; }

  /// Calls f(index) for the shown indices of a dimension; -1 stands for the ones left out.
  template <class F>
  void for_shown(std::int64_t dim, const F& f) const {
    const std::int64_t size = tensor_.size(dim);
    for (std::int64_t i = 0; i < size; ++i) {
      if (is_cut(dim) && i == edge_items) {
        f(-1);
        i = size - edge_items;
      }
      f(i);
    }
  }

  std::vector<std::int64_t> shown_offsets() const {
    std::vector<std::int64_t> offsets = {0};
    for (std::int64_t dim = 0; dim < tensor_.dim(); ++dim) {
      std::vector<std::int64_t> longer;
      for (const std::int64_t offset : offsets)
        for_shown(dim, [&](std::int64_t i) {
          if (i >= 0) longer.push_back(offset + i * tensor_.stride(dim));
        });
      offsets = std::move(longer);
    }
    return offsets;
  }

  std::string row(std::int64_t dim, std::int64_t offset, std::size_t indent) const {
    const std::size_t item_width = format_.width() + 2;  // and ", "
    const std::size_t per_line =
        std::max<std::size_t>(1, (line_width - std::min(indent, line_width - 1)) / item_width);
    std::string separator = ",\n";
    separator.append(indent + 1, ' ');
    std::string result = "[";
    std::size_t count = 0;
    for_shown(dim, [&](std::int64_t i) {
      if (count > 0) result += count % per_line == 0 ? separator : ", ";
      result += i < 0 ? " ..." : format_.padded(offset + i * tensor_.stride(dim));
      ++count;
    });
    return result + "]";
  }

  std::string block(std::int64_t dim, std::int64_t offset, std::size_t indent) const {
    if (dim + 1 == tensor_.dim()) return row(dim, offset, indent);
    // One line break between rows, one more between matrices, and so on.
    std::string separator = ",";
    separator.append(static_cast<std::size_t>(tensor_.dim() - dim - 1), '\n');
    separator.append(indent + 1, ' ');
    std::string result = "[";
    for_shown(dim, [&](std::int64_t i) {
      if (result.size() > 1) result += separator;
      result += i < 0 ? "..." : block(dim + 1, offset + i * tensor_.stride(dim), indent + 1);
    });
    return result + "]";
  }

  const Tensor& tensor_;
  bool abbreviated_;
  Format format_;
};

/// What follows the values: only what they do not show by themselves.
std::vector<std::string> attributes(const Tensor& tensor) {
  std::vector<std::string> result;
  const bool empty = tensor.numel() == 0;
  if (empty && tensor.dim() != 1)
    result.push_back(fmt::format("size=({})", fmt::join(tensor.shape(), ", ")));
  if (!tensor.device().is_cpu()) result.push_back(fmt::format("device='{}'", tensor.device()));
  const DType dtype = tensor.dtype();
  if (dtype != float32 && (empty || (dtype != int64 && dtype != bool_)))
    result.push_back(fmt::format("dtype={}", dtype));
  if (const auto node = tensor.grad_fn())
    result.push_back(fmt::format("grad_fn=<{}>", node->name()));
  else if (tensor.requires_grad())
    result.push_back("requires_grad=True");
  return result;
}

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "tensor(undefined)";
  static constexpr std::string_view prefix = "tensor(";
  const NoGradGuard no_grad;
  const Tensor values = tensor.device().is_cpu() ? tensor : tensor.cpu();
  std::string result(prefix);
  result += values.numel() == 0 ? "[]" : Writer(values).write(prefix.size());
  std::size_t column = result.size() - (result.rfind('\n') + 1);  // npos + 1 is 0
  for (const std::string& attribute : attributes(tensor)) {
    const bool fits = column + 2 + attribute.size() + 1 <= line_width;
    result += fits ? ", " : ",\n";
    if (!fits) result.append(prefix.size(), ' ');
    result += attribute;
    column = fits ? column + 2 + attribute.size() : prefix.size() + attribute.size();
  }
  return result + ")";
}

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) {
  return stream << to_string(tensor);
}

}  // namespace norma
