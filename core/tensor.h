// Tensor: a cheap handle on shape, strides, dtype, device and shared storage, with its place on the
// tape.
#pragma once

#include "norma/core/device.h"
#include "norma/core/dtype.h"
#include "norma/core/shape.h"

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <vector>

namespace norma {

class Node;
class Storage;
class Tensor;
struct TensorImpl;

using TensorList = std::vector<Tensor>;

/// How a factory makes a tensor: `randn({2, 3}, {.dtype = float64, .requires_grad = true})`.
/// Without a dtype each factory takes its own default (float32; int64 for integer ranges).
struct TensorOptions {
  std::optional<DType> dtype = std::nullopt;
  Device device = cpu;
  bool requires_grad = false;
};

/// Returned by every `register_*hook`; `remove()` unregisters, any number of times, also when the
/// owner is gone.
class RemovableHandle {
 public:
  RemovableHandle() = default;
  explicit RemovableHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  void remove() {
    if (remove_) std::exchange(remove_, nullptr)();
  }

 private:
  std::function<void()> remove_;
};

/// Replaces a gradient by what it returns; an undefined tensor leaves the gradient as it is.
using TensorHook = std::function<Tensor(const Tensor& gradient)>;

/// Options of Tensor::backward.
struct BackwardOptions {
  bool retain_graph = false;  ///< keep saved values, so that backward can run again
  bool create_graph = false;  ///< record the backward itself (implies retain_graph)
};

/// A multi-dimensional array. Copying the handle shares the data; `clone()` copies them.
///
/// A default-constructed Tensor is undefined: it stands for "no tensor" (an optional bias, say).
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::shared_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  /// Assignment to a view that has no name writes into the storage, as in PyTorch: `x[0] = y` and
  /// `x.narrow(1, 0, 2) = 0.0` are copy_ and fill_.
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): copy_ of what is in its own memory is fine
  const Tensor& operator=(const Tensor& source) && { return copy_(source); }
  const Tensor& operator=(double value) && { return fill_(value); }

  // -- what it is -------------------------------------------------------------------------------
  bool defined() const { return impl_ != nullptr; }
  const Shape& shape() const;
  const Shape& strides() const;
  /// Size of dimension `dim`, negative from the end.
  std::int64_t size(std::int64_t dim) const;
  std::int64_t stride(std::int64_t dim) const;
  std::int64_t dim() const { return shape().size(); }
  std::int64_t numel() const;
  DType dtype() const;
  Device device() const;
  std::size_t element_size() const { return norma::element_size(dtype()); }
  std::size_t nbytes() const { return element_size() * static_cast<std::size_t>(numel()); }
  bool is_floating_point() const { return norma::is_floating_point(dtype()); }
  bool is_contiguous() const;
  std::int64_t storage_offset() const;
  const std::shared_ptr<Storage>& storage() const;
  /// Whether both handles name one tensor object.
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

  // -- its elements -----------------------------------------------------------------------------
  /// First element; the element type must match the dtype exactly (DTypeError).
  template <class T>
  T* data() const {
    check<DTypeError>(dtype_of<T> == dtype(), "data", "tensor holds {}; got a request for {}",
                      dtype(), dtype_of<T>);
    return static_cast<T*>(raw_data());
  }
  void* raw_data() const;
  /// The only element of a one-element tensor, from any device.
  template <class T = double>
  T item() const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(item_as_int64());
    else
      return static_cast<T>(item_as_double());
  }
  /// All elements in row-major order, converted to T.
  template <class T>
  std::vector<T> to_vector() const;
  /// In-place changes of the storage so far.
  std::uint64_t version() const;

  // -- the tape (core/autograd.h, core/function.h) ------------------------------------------------
  bool requires_grad() const;
  /// Makes a leaf collect gradients. Throws AutogradError on an integer tensor or a non-leaf set to
  /// false.
  const Tensor& requires_grad_(bool requires_grad = true) const;
  bool is_leaf() const { return grad_fn() == nullptr; }
  /// Accumulated gradient; undefined before the first backward.
  Tensor grad() const;
  /// Replaces the gradient; an undefined tensor removes it.
  void set_grad(const Tensor& gradient) const;
  /// The node that made this tensor; null for a leaf.
  std::shared_ptr<Node> grad_fn() const;
  /// Index of this tensor among the outputs of grad_fn().
  std::uint32_t output_nr() const;
  /// Adds the derivative of this tensor to `.grad()` of every leaf that it depends on. A non-scalar
  /// needs `gradient`.
  void backward(const Tensor& gradient = {}, const BackwardOptions& options = {}) const;
  /// The same data without history.
  Tensor detach() const;
  /// Keep `.grad()` of a non-leaf, too.
  void retain_grad() const;
  /// Calls `hook` with this tensor's gradient when it is complete. Hooks run in the order of
  /// registration, each sees what the one before returned; retain_grad and the tape get the last
  /// one's result.
  RemovableHandle register_hook(TensorHook hook) const;

  // -- operations with method syntax (ops/tensor_methods.cpp); all others are functions alone -----
  Tensor clone() const;
  Tensor contiguous() const;
  Tensor to(DType dtype) const;
  Tensor to(const Device& device) const;
  Tensor cpu() const { return to(norma::cpu); }
  Tensor view(const Shape& shape) const;
  Tensor reshape(const Shape& shape) const;
  Tensor flatten(std::int64_t start_dim = 0, std::int64_t end_dim = -1) const;
  Tensor transpose(std::int64_t dim0, std::int64_t dim1) const;
  Tensor t() const;
  Tensor permute(const Shape& dims) const;
  Tensor expand(const Shape& shape) const;
  Tensor squeeze(std::int64_t dim) const;
  Tensor unsqueeze(std::int64_t dim) const;
  Tensor narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const;
  Tensor select(std::int64_t dim, std::int64_t index) const;
  /// `x[i]` is `x.select(0, i)`.
  Tensor operator[](std::int64_t index) const { return select(0, index); }
  Tensor sum() const;
  Tensor sum(const Shape& dims, bool keepdim = false) const;
  Tensor mean() const;
  Tensor mean(const Shape& dims, bool keepdim = false) const;
  Tensor any() const;
  Tensor any(const Shape& dims, bool keepdim = false) const;
  Tensor all() const;
  Tensor all(const Shape& dims, bool keepdim = false) const;
  Tensor matmul(const Tensor& other) const;
  Tensor exp() const;
  Tensor log() const;
  Tensor sqrt() const;
  Tensor rsqrt() const;
  Tensor tanh() const;
  Tensor sigmoid() const;
  Tensor abs() const;
  Tensor square() const;
  Tensor pow(double exponent) const;

  // In place: bump the version. On a leaf that requires grad only under no_grad.
  const Tensor& add_(const Tensor& other, double alpha = 1.0) const;
  const Tensor& add_(double other) const;
  const Tensor& sub_(const Tensor& other, double alpha = 1.0) const;
  const Tensor& sub_(double other) const;
  const Tensor& mul_(const Tensor& other) const;
  const Tensor& mul_(double factor) const;
  const Tensor& div_(double divisor) const;
  const Tensor& copy_(const Tensor& source) const;
  const Tensor& fill_(double value) const;
  const Tensor& zero_() const { return fill_(0.0); }
  const Tensor& operator+=(const Tensor& other) const { return add_(other); }
  const Tensor& operator+=(double other) const { return add_(other); }
  const Tensor& operator-=(const Tensor& other) const { return sub_(other); }
  const Tensor& operator-=(double other) const { return sub_(other); }
  const Tensor& operator*=(const Tensor& other) const { return mul_(other); }
  const Tensor& operator*=(double factor) const { return mul_(factor); }
  const Tensor& operator/=(double divisor) const { return div_(divisor); }

  const std::shared_ptr<TensorImpl>& impl() const { return impl_; }

 private:
  double item_as_double() const;
  std::int64_t item_as_int64() const;
  std::shared_ptr<TensorImpl> impl_;
};

/// Prints values with aligned columns, long tensors abbreviated, then shape, dtype and device where
/// not the default.
std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);
/// What `operator<<` prints.
std::string to_string(const Tensor& tensor);

}  // namespace norma
