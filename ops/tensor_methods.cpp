// The methods of Tensor that are operations (declared in core/tensor.h), and the in-place
// operations.
#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/core/required_ops.h"
#include "norma/core/tensor.h"
#include "norma/ops/backend.h"
#include "norma/ops/cast.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"
#include "norma/ops/reduction.h"
#include "norma/ops/view.h"

namespace norma {

// -- out of place ---------------------------------------------------------------------------------

Tensor Tensor::clone() const { return norma::clone(*this); }
Tensor Tensor::contiguous() const { return norma::contiguous(*this); }
Tensor Tensor::to(DType dtype) const { return norma::to(*this, dtype); }
Tensor Tensor::to(const Device& device) const { return norma::to(*this, device); }
Tensor Tensor::view(const Shape& shape) const { return norma::view(*this, shape); }
Tensor Tensor::reshape(const Shape& shape) const { return norma::reshape(*this, shape); }
Tensor Tensor::flatten(std::int64_t start_dim, std::int64_t end_dim) const {
  return norma::flatten(*this, start_dim, end_dim);
}
Tensor Tensor::transpose(std::int64_t dim0, std::int64_t dim1) const {
  return norma::transpose(*this, dim0, dim1);
}
Tensor Tensor::t() const { return norma::t(*this); }
Tensor Tensor::permute(const Shape& dims) const { return norma::permute(*this, dims); }
Tensor Tensor::expand(const Shape& shape) const { return norma::expand(*this, shape); }
Tensor Tensor::squeeze(std::int64_t dim) const { return norma::squeeze(*this, dim); }
Tensor Tensor::unsqueeze(std::int64_t dim) const { return norma::unsqueeze(*this, dim); }
Tensor Tensor::narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const {
  return norma::narrow(*this, dim, start, length);
}
Tensor Tensor::select(std::int64_t dim, std::int64_t index) const {
  return norma::select(*this, dim, index);
}
Tensor Tensor::sum() const { return norma::sum(*this); }
Tensor Tensor::sum(const Shape& dims, bool keepdim) const {
  return norma::sum(*this, dims, keepdim);
}
Tensor Tensor::mean() const { return norma::mean(*this); }
Tensor Tensor::mean(const Shape& dims, bool keepdim) const {
  return norma::mean(*this, dims, keepdim);
}
Tensor Tensor::any() const { return norma::any(*this); }
Tensor Tensor::any(const Shape& dims, bool keepdim) const {
  return norma::any(*this, dims, keepdim);
}
Tensor Tensor::all() const { return norma::all(*this); }
Tensor Tensor::all(const Shape& dims, bool keepdim) const {
  return norma::all(*this, dims, keepdim);
}
Tensor Tensor::matmul(const Tensor& other) const { return norma::matmul(*this, other); }
Tensor Tensor::exp() const { return norma::exp(*this); }
Tensor Tensor::log() const { return norma::log(*this); }
Tensor Tensor::sqrt() const { return norma::sqrt(*this); }
Tensor Tensor::rsqrt() const { return norma::rsqrt(*this); }
Tensor Tensor::tanh() const { return norma::tanh(*this); }
Tensor Tensor::sigmoid() const { return norma::sigmoid(*this); }
Tensor Tensor::abs() const { return norma::abs(*this); }
Tensor Tensor::square() const { return norma::square(*this); }
Tensor Tensor::pow(double exponent) const { return norma::pow(*this, exponent); }

// -- in place: the tape checks the target and bumps the version -----------------------------------

namespace {

/// What holds for the target of an in-place operation that gives its elements different values.
void check_target(const Tensor& target, const char* op) {
  check<ValueError>(target.defined(), op,
                    "the tensor that changes must be defined; got an empty Tensor handle, as "
                    ".grad() is before the first backward");
  if (target.numel() == 0) return;
  for (std::int64_t d = 0; d < target.dim(); ++d)
    check<ShapeError>(target.stride(d) != 0 || target.size(d) <= 1, op,
                      "each element of the target must have memory of its own, and dimension {} is "
                      "expanded; got shape {} with strides {}; clone() it first",
                      d, target.shape(), target.strides());
}

/// What holds for the operand of an in-place operation.
void check_operand(const Tensor& target, const Tensor& other, const char* op) {
  check<ValueError>(other.defined(), op, "the operand must be defined; got an empty Tensor handle");
  check<ShapeError>(is_expandable_to(other.shape(), target.shape()), op,
                    "the operand must broadcast to shape {}, which cannot change; got {}",
                    target.shape(), other.shape());
  check<DeviceError>(other.device() == target.device(), op,
                     "both must be on one device; got {} and {}; move one with .to()",
                     target.device(), other.device());
  check<DTypeError>(can_cast(other.dtype(), target.dtype()), op,
                    "a {} tensor cannot hold the {} result; use the out-of-place operation",
                    target.dtype(), other.dtype());
}

/// `other` as the kernels take it: expanded and converted.
Tensor operand(const Tensor& target, const Tensor& other) {
  return expand(to(other, target.dtype()), target.shape());
}

/// `other`, or a copy of it where it lies in the memory that is about to change: the kernels must
/// not read what they wrote, and backward needs the value from before.
Tensor apart(const Tensor& target, const Tensor& other) {
  return other.storage() == target.storage() ? clone(other) : other;
}

struct AddInPlace : Function<AddInPlace> {
  static constexpr const char* name = "add_";
  static Tensor forward(Context& ctx, const Tensor& self, const Tensor& other, double alpha) {
    ctx.mark_dirty({self});
    ctx.set("alpha", alpha);
    const Tensor x = operand(self, other);
    if (self.is_contiguous() && self.is_floating_point())
      backend(self).add_scaled(self, x.contiguous(), alpha);
    else
      detail::copy(
          self,
          add(self, alpha == 1.0 ? x : mul(x, detail::factor_for(self.dtype(), alpha, name))));
    return self;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    const double alpha = ctx.get<double>("alpha");
    Tensor to_other;
    if (ctx.needs_input_grad(1)) to_other = alpha == 1.0 ? grad : mul(grad, alpha);
    return {grad, to_other};
  }
};

struct AddScalarInPlace : Function<AddScalarInPlace> {
  static constexpr const char* name = "add_";
  static Tensor forward(Context& ctx, const Tensor& self, double other) {
    ctx.mark_dirty({self});
    detail::copy(self, add(self, detail::factor_for(self.dtype(), other, name)));
    return self;
  }
  static TensorList backward(Context& /*ctx*/, const Tensor& grad) { return {grad}; }
};

struct MulInPlace : Function<MulInPlace> {
  static constexpr const char* name = "mul_";
  /// `old`: a copy of self from before the change, with its history, where `other` needs a
  /// gradient.
  static Tensor forward(Context& ctx, const Tensor& self, const Tensor& other, const Tensor& old) {
    ctx.mark_dirty({self});
    ctx.save_for_backward({other, old});
    detail::copy(self, mul(self, operand(self, other)));
    return self;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    Tensor to_self, to_other;
    if (ctx.needs_input_grad(0)) to_self = mul(grad, ctx.saved_tensor(0));
    if (ctx.needs_input_grad(1)) to_other = mul(grad, ctx.saved_tensor(1));
    return {to_self, to_other, Tensor()};
  }
};

struct MulScalarInPlace : Function<MulScalarInPlace> {
  static constexpr const char* name = "mul_";
  static Tensor forward(Context& ctx, const Tensor& self, double factor) {
    ctx.mark_dirty({self});
    ctx.set("factor", factor);
    detail::copy(self, mul(self, detail::factor_for(self.dtype(), factor, name)));
    return self;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    return {mul(grad, ctx.get<double>("factor"))};
  }
};

struct DivScalarInPlace : Function<DivScalarInPlace> {
  static constexpr const char* name = "div_";
  static Tensor forward(Context& ctx, const Tensor& self, double divisor) {
    ctx.mark_dirty({self});
    ctx.set("divisor", divisor);
    detail::copy(self, div(self, divisor));
    return self;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    return {div(grad, ctx.get<double>("divisor"))};
  }
};

/// The gradient of a value that was overwritten.
Tensor overwritten(const Context& ctx, const Tensor& grad) {
  return ctx.needs_input_grad(0) ? zeros_like(grad) : Tensor();
}

struct CopyInPlace : Function<CopyInPlace> {
  static constexpr const char* name = "copy_";
  static Tensor forward(Context& ctx, const Tensor& self, const Tensor& source) {
    ctx.mark_dirty({self});
    ctx.set("device", source.device());
    detail::copy(self, expand(source, self.shape()));
    return self;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    return {overwritten(ctx, grad), to(grad, ctx.get<Device>("device"))};
  }
};

struct FillInPlace : Function<FillInPlace> {
  static constexpr const char* name = "fill_";
  static Tensor forward(Context& ctx, const Tensor& self, double value) {
    ctx.mark_dirty({self});
    detail::fill(self, value);
    return self;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) { return {overwritten(ctx, grad)}; }
};

void check_not_bool(const Tensor& target, const char* op) {
  check<DTypeError>(target.dtype() != DType::bool_, op,
                    "a bool tensor cannot hold a sum; use the out-of-place operation, or "
                    "logical_or and logical_xor");
}

// Subtraction adds the negative, which rounds alike. `op` is the name in errors.

const Tensor& add_in_place(const Tensor& self, const Tensor& other, double alpha, const char* op) {
  check_target(self, op);
  check_operand(self, other, op);
  detail::factor_for(self.dtype(), alpha, op);  // throws
  FunctionRecorder::check_in_place(op, self, {self, other});
  AddInPlace::apply(self, apart(self, other), alpha);
  return self;
}

const Tensor& add_in_place(const Tensor& self, double other, const char* op) {
  check_target(self, op);
  check_not_bool(self, op);
  detail::factor_for(self.dtype(), other, op);  // throws
  FunctionRecorder::check_in_place(op, self, {self});
  AddScalarInPlace::apply(self, other);
  return self;
}

}  // namespace

const Tensor& Tensor::add_(const Tensor& other, double alpha) const {
  return add_in_place(*this, other, alpha, "add_");
}

const Tensor& Tensor::add_(double other) const { return add_in_place(*this, other, "add_"); }

const Tensor& Tensor::sub_(const Tensor& other, double alpha) const {
  check_target(*this, "sub_");
  check_not_bool(*this, "sub_");
  return add_in_place(*this, other, -alpha, "sub_");
}

const Tensor& Tensor::sub_(double other) const { return add_in_place(*this, -other, "sub_"); }

const Tensor& Tensor::mul_(const Tensor& other) const {
  check_target(*this, "mul_");
  check_operand(*this, other, "mul_");
  FunctionRecorder::check_in_place("mul_", *this, {*this, other});
  const bool needs_old = GradMode::is_enabled() && other.requires_grad();
  MulInPlace::apply(*this, apart(*this, other), needs_old ? norma::clone(*this) : Tensor());
  return *this;
}

const Tensor& Tensor::mul_(double factor) const {
  check_target(*this, "mul_");
  check<DTypeError>(dtype() != DType::bool_, "mul_",
                    "a bool tensor cannot hold a product with a number; use logical_and, or the "
                    "out-of-place operation");
  FunctionRecorder::check_in_place("mul_", *this, {*this});
  MulScalarInPlace::apply(*this, factor);
  return *this;
}

const Tensor& Tensor::div_(double divisor) const {
  check_target(*this, "div_");
  check<DTypeError>(is_floating_point(), "div_",
                    "a {} tensor cannot hold quotients; use the out-of-place operation", dtype());
  FunctionRecorder::check_in_place("div_", *this, {*this});
  DivScalarInPlace::apply(*this, divisor);
  return *this;
}

const Tensor& Tensor::copy_(const Tensor& source) const {
  check_target(*this, "copy_");
  check<ValueError>(source.defined(), "copy_",
                    "the source must be defined; got an empty Tensor handle");
  check<ShapeError>(is_expandable_to(source.shape(), shape()), "copy_",
                    "the source must broadcast to shape {}; got {}", shape(), source.shape());
  FunctionRecorder::check_in_place("copy_", *this, {*this, source});
  CopyInPlace::apply(*this, apart(*this, source));
  return *this;
}

const Tensor& Tensor::fill_(double value) const {
  FunctionRecorder::check_in_place("fill_", *this, {*this});
  FillInPlace::apply(*this, value);
  return *this;
}

}  // namespace norma
