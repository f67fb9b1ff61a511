// Selection: clamp, where, masked_fill. The other elementwise operations are in
// elementwise_{unary,binary}.cpp.
#include "norma/ops/elementwise.h"

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/ops/backend.h"

#include <limits>

namespace norma {

namespace {

void check_condition(const Tensor& condition, const char* name, const char* what) {
  check<ValueError>(condition.defined(), name, "{} must be defined; got an empty Tensor handle",
                    what);
  check<DTypeError>(condition.dtype() == DType::bool_, name,
                    "{} must be a bool tensor; got {}; compare it, for example `{} != 0`", what,
                    condition.dtype(), what);
}

void check_device(const Tensor& a, const Tensor& b, const char* name) {
  check<ValueError>(a.defined() && b.defined(), name,
                    "all operands must be defined; got an empty Tensor handle");
  check<DeviceError>(a.device() == b.device(), name,
                     "all operands must be on one device; got {} and {}; move one with .to(device)",
                     a.device(), b.device());
}

/// `value` as a 0-d tensor beside `like`.
Tensor constant(double value, DType dtype, const Tensor& like) {
  return full({}, value, {.dtype = dtype, .device = like.device()});
}

Tensor run_where(const Tensor& condition, const Tensor& a, const Tensor& b, const Shape& shape) {
  Tensor out = empty(shape, {.dtype = a.dtype(), .device = a.device()});
  backend(a).where(condition.expand(shape), a.expand(shape), b.expand(shape), out);
  return out;
}

struct Where : Function<Where> {
  static constexpr const char* name = "where";
  static Tensor forward(Context& ctx, const Tensor& condition, const Tensor& a, const Tensor& b) {
    if (ctx.is_recording()) ctx.save_for_backward({condition});
    const Shape shape =
        broadcast_shapes(condition.shape(), broadcast_shapes(a.shape(), b.shape(), name), name);
    return run_where(condition, a, b, shape);
  }
  static TensorList backward(Context& ctx, const Tensor& dy) {
    const Tensor condition = ctx.saved_tensor(0);
    const Tensor zero = constant(0.0, dy.dtype(), dy);
    return {Tensor(), ctx.needs_input_grad(1) ? where(condition, dy, zero) : Tensor(),
            ctx.needs_input_grad(2) ? where(condition, zero, dy) : Tensor()};
  }
};

struct MaskedFill : Function<MaskedFill> {
  static constexpr const char* name = "masked_fill";
  static Tensor forward(Context& ctx, const Tensor& x, const Tensor& mask, double value) {
    if (ctx.is_recording()) ctx.save_for_backward({mask});
    const Shape shape = broadcast_shapes(x.shape(), mask.shape(), name);
    return run_where(mask, constant(value, x.dtype(), x), x, shape);
  }
  static TensorList backward(Context& ctx, const Tensor& dy) {
    return {masked_fill(dy, ctx.saved_tensor(0), 0.0), Tensor()};
  }
};

struct Clamp : Function<Clamp> {
  static constexpr const char* name = "clamp";
  static Tensor forward(Context& ctx, const Tensor& x, double min, double max) {
    if (ctx.is_recording()) {
      ctx.save_for_backward({x});
      ctx.set("min", min);
      ctx.set("max", max);
    }
    Tensor out = empty(x.shape(), {.dtype = x.dtype(), .device = x.device()});
    backend(x).clamp(x, min, max, out);
    return out;
  }
  static TensorList backward(Context& ctx, const Tensor& dy) {
    const Tensor x = ctx.saved_tensor(0);
    const Tensor inside = logical_and(x >= ctx.get<double>("min"), x <= ctx.get<double>("max"));
    return {where(inside, dy, constant(0.0, dy.dtype(), dy))};
  }
};

}  // namespace

Tensor clamp(const Tensor& x, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  check<ValueError>(x.defined(), "clamp", "the input must be defined; got an empty Tensor handle");
  check<ValueError>(min || max, "clamp",
                    "needs a bound; got neither min nor max; give one of them");
  check<DTypeError>(x.dtype() != DType::bool_, "clamp", "needs a number; got a bool tensor");
  DType dtype = x.dtype();
  if ((min && !min->is_integral()) || (max && !max->is_integral())) dtype = result_type(x, 0.0);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return Clamp::apply(x.to(dtype).contiguous(), min ? min->value() : -infinity,
                      max ? max->value() : infinity);
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  check_condition(condition, "where", "condition");
  check_device(a, b, "where");
  check_device(condition, a, "where");
  const DType dtype = result_type(a, b);
  return Where::apply(condition, a.to(dtype), b.to(dtype));
}

Tensor where(const Tensor& condition, const Tensor& a, const Scalar& b) {
  check<ValueError>(a.defined(), "where",
                    "all operands must be defined; got an empty Tensor handle");
  return where(condition, a, constant(b.value(), result_type(a, b), a));
}

Tensor where(const Tensor& condition, const Scalar& a, const Tensor& b) {
  check<ValueError>(b.defined(), "where",
                    "all operands must be defined; got an empty Tensor handle");
  return where(condition, constant(a.value(), result_type(b, a), b), b);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Scalar& value) {
  check_condition(mask, "masked_fill", "mask");
  check_device(x, mask, "masked_fill");
  check<DTypeError>(
      x.is_floating_point() || value.is_integral(), "masked_fill",
      "an integer tensor takes an integer value; got {}; convert it with .to(float32)",
      value.value());
  return MaskedFill::apply(x, mask, value.value());
}

}  // namespace norma
