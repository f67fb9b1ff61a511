#include "norma/core/tensor.h"

#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/node.h"
#include "norma/core/required_ops.h"
#include "norma/core/tensor_impl.h"

#include <limits>

namespace norma {

namespace {

const TensorImpl& get(const Tensor& tensor, const char* operation) {
  check<ValueError>(
      tensor.defined(), operation,
      "the tensor must be defined; got a default-constructed Tensor; make one with zeros, "
      "randn, …, or test with defined()");
  return *tensor.impl();
}

/// Bytes of `shape` elements; throws when that does not fit an int64.
std::size_t checked_bytes(const Shape& shape, DType dtype) {
  for (const std::int64_t size : shape)
    check<ShapeError>(size >= 0, "empty", "sizes must not be negative; got {}", shape);
  std::int64_t bytes = static_cast<std::int64_t>(element_size(dtype));
  check<ShapeError>(!__builtin_mul_overflow(bytes, shape.numel("empty"), &bytes), "empty",
                    "a tensor must have fewer than 2^63 bytes; got shape {}", shape);
  return static_cast<std::size_t>(bytes);
}

}  // namespace

TensorImpl::TensorImpl(std::shared_ptr<Storage> data, DType type, const Shape& sizes,
                       const Shape& steps, std::int64_t start)
    : shape(sizes),
      strides(steps),
      offset(start),
      numel(sizes.numel()),
      dtype(type),
      contiguous(norma::is_contiguous(sizes, steps)),
      storage(std::move(data)) {}

namespace detail {

Tensor make_tensor(const Shape& shape, DType dtype, const Device& device) {
  auto storage = std::make_shared<Storage>(checked_bytes(shape, dtype), device);
  return Tensor(
      std::make_shared<TensorImpl>(std::move(storage), dtype, shape, contiguous_strides(shape), 0));
}

Tensor make_view(const Tensor& base, const Shape& shape, const Shape& strides,
                 std::int64_t offset) {
  const TensorImpl& source = get(base, "view");
  auto impl = std::make_shared<TensorImpl>(source.storage, source.dtype, shape, strides, offset);
  impl->is_view = true;
  impl->base_has_history = base.requires_grad() || source.base_has_history;
  impl->counted.count_in(&source.storage->plain_views);
  return Tensor(std::move(impl));
}

Tensor shallow_copy(const Tensor& base) {
  const TensorImpl& source = get(base, "detach");
  auto impl = std::make_shared<TensorImpl>(source.storage, source.dtype, source.shape,
                                           source.strides, source.offset);
  impl->is_view = source.is_view;
  return Tensor(std::move(impl));
}

}  // namespace detail

const Shape& Tensor::shape() const { return get(*this, "shape").shape; }
const Shape& Tensor::strides() const { return get(*this, "strides").strides; }
std::int64_t Tensor::numel() const { return get(*this, "numel").numel; }
DType Tensor::dtype() const { return get(*this, "dtype").dtype; }
Device Tensor::device() const { return get(*this, "device").storage->device(); }
bool Tensor::is_contiguous() const { return get(*this, "is_contiguous").contiguous; }
std::int64_t Tensor::storage_offset() const { return get(*this, "storage_offset").offset; }
const std::shared_ptr<Storage>& Tensor::storage() const { return get(*this, "storage").storage; }
std::uint64_t Tensor::version() const { return storage()->version(); }

std::int64_t Tensor::size(std::int64_t dim) const {
  check<IndexError>(this->dim() > 0, "size", "a scalar has no dimensions; got dimension {}", dim);
  return shape()[normalize_dim(dim, this->dim(), "size")];
}

std::int64_t Tensor::stride(std::int64_t dim) const {
  check<IndexError>(this->dim() > 0, "stride", "a scalar has no dimensions; got dimension {}", dim);
  return strides()[normalize_dim(dim, this->dim(), "stride")];
}

void* Tensor::raw_data() const {
  const TensorImpl& impl = get(*this, "data");
  if (impl.storage->data() == nullptr) return nullptr;
  return static_cast<char*>(impl.storage->data()) +
         impl.offset * static_cast<std::int64_t>(norma::element_size(impl.dtype));
}

namespace {

/// The only element of `tensor`, converted to T.
template <class T>
T only_element(const Tensor& tensor) {
  check<ShapeError>(tensor.numel() == 1, "item",
                    "the tensor must have one element; got shape {}; use to_vector() or select()",
                    tensor.shape());
  const Tensor host =
      tensor.device().is_cpu() ? tensor : detail::shallow_copy(tensor).to(norma::cpu);
  return visit_all(tensor.dtype(), [&]<class Element>(TypeTag<Element>) {
    return static_cast<T>(*host.data<Element>());
  });
}

}  // namespace

double Tensor::item_as_double() const { return only_element<double>(*this); }
// Not through double: it holds no int64 above 2^53.
std::int64_t Tensor::item_as_int64() const { return only_element<std::int64_t>(*this); }

template <class T>
std::vector<T> Tensor::to_vector() const {
  Tensor host = detail::make_tensor(shape(), dtype_of<T>, norma::cpu);
  detail::copy(host, *this);
  std::vector<T> values(static_cast<std::size_t>(numel()));
  for (std::int64_t i = 0; i < numel(); ++i)
    values[static_cast<std::size_t>(i)] = host.data<T>()[i];
  return values;
}
template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;
template std::vector<std::int32_t> Tensor::to_vector() const;
template std::vector<std::int64_t> Tensor::to_vector() const;
template std::vector<bool> Tensor::to_vector() const;

// -- the tape -----------------------------------------------------------------------------------

bool Tensor::requires_grad() const {
  if (!impl_ || !impl_->autograd) return false;
  return impl_->autograd->requires_grad || impl_->autograd->grad_fn != nullptr;
}

const Tensor& Tensor::requires_grad_(bool requires_grad) const {
  get(*this, "requires_grad_");
  check<AutogradError>(
      !requires_grad || is_floating_point(), "requires_grad_",
      "only floating-point tensors have gradients; got {}; convert with .to(float32)", dtype());
  check<AutogradError>(is_leaf() || requires_grad, "requires_grad_",
                       "only a leaf can stop requiring grad; got a result of {}; use detach()",
                       is_leaf() ? "" : grad_fn()->name());
  if (is_leaf() && (requires_grad || impl_->autograd)) impl_->meta().requires_grad = requires_grad;
  return *this;
}

Tensor Tensor::grad() const {
  get(*this, "grad");
  return impl_->autograd ? impl_->autograd->grad : Tensor();
}

void Tensor::set_grad(const Tensor& gradient) const {
  get(*this, "set_grad");
  if (gradient.defined()) {
    check<ShapeError>(gradient.shape() == shape(), "set_grad",
                      "a gradient must have the tensor's shape {}; got {}", shape(),
                      gradient.shape());
    check<DTypeError>(gradient.dtype() == dtype(), "set_grad",
                      "a gradient must have the tensor's dtype {}; got {}", dtype(),
                      gradient.dtype());
    check<DeviceError>(gradient.device() == device(), "set_grad",
                       "a gradient must be on the tensor's device {}; got {}", device(),
                       gradient.device());
  }
  if (gradient.defined() || impl_->autograd) impl_->meta().grad = gradient;
}

std::shared_ptr<Node> Tensor::grad_fn() const {
  return impl_ && impl_->autograd ? impl_->autograd->grad_fn : nullptr;
}

std::uint32_t Tensor::output_nr() const {
  return impl_ && impl_->autograd ? impl_->autograd->output_nr : 0;
}

void Tensor::backward(const Tensor& gradient, const BackwardOptions& options) const {
  norma::backward({*this}, {gradient}, options);
}

Tensor Tensor::detach() const { return detail::shallow_copy(*this); }

void Tensor::retain_grad() const {
  check<AutogradError>(requires_grad(), "retain_grad",
                       "the tensor must require grad; got one that does not");
  if (is_leaf()) return;
  Node& node = *grad_fn();
  if (node.retained.size() <= output_nr()) node.retained.resize(output_nr() + 1);
  node.retained[output_nr()] = impl_;
}

RemovableHandle Tensor::register_hook(TensorHook hook) const {
  check<AutogradError>(
      requires_grad(), "register_hook",
      "the tensor must require grad; got one that does not; call requires_grad_() first");
  check<ValueError>(hook != nullptr, "register_hook",
                    "the hook must be callable; got an empty function");
  AutogradMeta& meta = impl_->meta();
  std::shared_ptr<HookList>& list = [&]() -> std::shared_ptr<HookList>& {
    if (!meta.grad_fn) return meta.hooks;
    std::vector<std::shared_ptr<HookList>>& all = meta.grad_fn->hooks;
    if (all.size() <= meta.output_nr) all.resize(meta.output_nr + 1);
    return all[meta.output_nr];
  }();
  if (!list) list = std::make_shared<HookList>();
  if (const auto accumulator = meta.grad_accumulator.lock()) accumulator->hooks.assign(1, list);
  const std::uint64_t id = list->next_id++;
  list->hooks.emplace_back(id, std::move(hook));
  return RemovableHandle([weak = std::weak_ptr(list), id] {
    if (const auto alive = weak.lock())
      alive->hooks.remove_if([id](const auto& entry) { return entry.first == id; });
  });
}

}  // namespace norma
