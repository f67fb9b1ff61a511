#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/ops/backend.h"
#include "norma/ops/elementwise.h"

#include <cmath>

namespace norma {

namespace {

constexpr const char* name_of(BinaryOp op) {
  constexpr const char* names[] = {"add",     "sub",     "mul", "div",         "pow",
                                   "maximum", "minimum", "eq",  "ne",          "lt",
                                   "le",      "gt",      "ge",  "logical_and", "logical_or"};
  return names[static_cast<std::size_t>(op)];
}

void check_operands(const Tensor& a, const Tensor& b, const char* name) {
  check<ValueError>(a.defined() && b.defined(), name,
                    "both operands must be defined; got an empty Tensor handle");
  check<DeviceError>(
      a.device() == b.device(), name,
      "both operands must be on one device; got {} and {}; move one with .to(device)", a.device(),
      b.device());
}

/// Runs the kernel on operands of one dtype.
Tensor run_binary(BinaryOp op, const Tensor& a, const Tensor& b) {
  const Shape shape =
      a.shape() == b.shape() ? a.shape() : broadcast_shapes(a.shape(), b.shape(), name_of(op));
  const DType dtype = op >= BinaryOp::eq ? DType::bool_ : a.dtype();
  Tensor out = empty(shape, {.dtype = dtype, .device = a.device()});
  backend(a).binary(op, a.shape() == shape ? a : a.expand(shape),
                    b.shape() == shape ? b : b.expand(shape), out);
  return out;
}

Tensor run_scalar(BinaryOp op, const Tensor& x, double scalar, bool reversed) {
  const DType dtype = op >= BinaryOp::eq ? DType::bool_ : x.dtype();
  Tensor out = empty(x.shape(), {.dtype = dtype, .device = x.device()});
  backend(x).binary_scalar(op, x.contiguous(), scalar, reversed, out);
  return out;
}

/// Tensor with tensor. Gradients have the broadcast shape; the engine sums them.
template <BinaryOp op>
struct Binary : Function<Binary<op>> {
  static constexpr const char* name = name_of(op);

  static Tensor forward(Context& ctx, const Tensor& a, const Tensor& b) {
    Tensor out = run_binary(op, a, b);
    if (ctx.is_recording()) {
      const bool needs_a = ctx.needs_input_grad(0);
      const bool needs_b = ctx.needs_input_grad(1);
      if constexpr (op == BinaryOp::mul)
        ctx.save_for_backward({needs_b ? a : Tensor(), needs_a ? b : Tensor()});
      else if constexpr (op == BinaryOp::div)
        ctx.save_for_backward({needs_b ? a : Tensor(), b});
      else if constexpr (op == BinaryOp::maximum || op == BinaryOp::minimum)
        ctx.save_for_backward({a, b});
      else if constexpr (op == BinaryOp::pow)
        ctx.save_for_backward({a, b, needs_b ? out : Tensor()});
    }
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& dy) {
    const bool needs_a = ctx.needs_input_grad(0);
    const bool needs_b = ctx.needs_input_grad(1);
    Tensor da, db;
    if constexpr (op == BinaryOp::add) {
      if (needs_a) da = dy;
      if (needs_b) db = dy;
    } else if constexpr (op == BinaryOp::sub) {
      if (needs_a) da = dy;
      if (needs_b) db = -dy;
    } else if constexpr (op == BinaryOp::mul) {
      if (needs_a) da = dy * ctx.saved_tensor(1);
      if (needs_b) db = dy * ctx.saved_tensor(0);
    } else if constexpr (op == BinaryOp::div) {
      const Tensor b = ctx.saved_tensor(1);
      if (needs_a) da = dy / b;
      if (needs_b) db = -dy * (ctx.saved_tensor(0) / b / b);
    } else if constexpr (op == BinaryOp::pow) {
      const Tensor a = ctx.saved_tensor(0);
      const Tensor b = ctx.saved_tensor(1);
      // Where b is 0 the power of b - 1 must not even be computed: it is infinite at a = 0.
      if (needs_a) {
        const Tensor constant = b == 0.0;
        da = masked_fill(dy * (b * pow(a, masked_fill(b - 1.0, constant, 1.0))), constant, 0.0);
      }
      if (needs_b) {
        // log 0 must not even be computed: its own derivative would be NaN in second order.
        const Tensor flat = logical_and(a == 0.0, b >= 0.0);
        db = masked_fill(dy * (ctx.saved_tensor(2) * log(masked_fill(a, flat, 1.0))), flat, 0.0);
      }
    } else {
      const Tensor a = ctx.saved_tensor(0);
      const Tensor b = ctx.saved_tensor(1);
      const Tensor share = where(a == b, dy * 0.5, dy);
      constexpr bool largest = op == BinaryOp::maximum;
      if (needs_a) da = masked_fill(share, largest ? a < b : a > b, 0.0);
      if (needs_b) db = masked_fill(share, largest ? a > b : a < b, 0.0);
    }
    return {da, db};
  }
};

/// Tensor with number, or number with tensor when `reversed`.
template <BinaryOp op>
struct BinaryScalar : Function<BinaryScalar<op>> {
  static constexpr const char* name = name_of(op);

  static Tensor forward(Context& ctx, const Tensor& x, double scalar, bool reversed) {
    Tensor out = run_scalar(op, x, scalar, reversed);
    if (ctx.is_recording()) {
      ctx.set("scalar", scalar);
      ctx.set("reversed", reversed);
      if constexpr (op == BinaryOp::pow) {
        if (reversed)
          ctx.save_for_backward({x, out});
        else
          ctx.save_for_backward({x});
      } else if constexpr (op == BinaryOp::div) {
        if (reversed) ctx.save_for_backward({x});
      }
    }
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& dy) {
    const double scalar = ctx.get<double>("scalar");
    const bool reversed = ctx.get<bool>("reversed");
    if constexpr (op == BinaryOp::add)
      return {dy};
    else if constexpr (op == BinaryOp::sub)
      return {reversed ? -dy : dy};
    else if constexpr (op == BinaryOp::mul)
      return {dy * scalar};
    else if constexpr (op == BinaryOp::div) {
      if (!reversed) return {dy / scalar};
      const Tensor x = ctx.saved_tensor(0);
      return {dy * (-scalar / square(x))};
    } else {
      const Tensor x = ctx.saved_tensor(0);
      if (!reversed) return {scalar == 0.0 ? zeros_like(dy) : dy * (pow(x, scalar - 1.0) * scalar)};
      const Tensor slope = ctx.saved_tensor(1) * std::log(scalar);
      return {dy * (scalar == 0.0 ? masked_fill(slope, x >= 0.0, 0.0) : slope)};
    }
  }
};

template <BinaryOp op>
Tensor arithmetic(const Tensor& a, const Tensor& b) {
  check_operands(a, b, name_of(op));
  DType dtype = result_type(a, b);
  if (op == BinaryOp::div && !is_floating_point(dtype)) dtype = float32;
  check<DTypeError>(op != BinaryOp::sub || dtype != DType::bool_, "sub",
                    "needs a number; got two bool tensors; use logical_xor");
  return Binary<op>::apply(a.to(dtype), b.to(dtype));
}

template <BinaryOp op>
Tensor arithmetic(const Tensor& x, const Scalar& scalar, bool reversed = false) {
  check<ValueError>(x.defined(), name_of(op),
                    "the tensor must be defined; got an empty Tensor handle");
  DType dtype = result_type(x, scalar);
  if (op == BinaryOp::div && !is_floating_point(dtype)) dtype = float32;
  return BinaryScalar<op>::apply(x.to(dtype), scalar.value(), reversed);
}

template <BinaryOp op>
Tensor compare(const Tensor& a, const Tensor& b) {
  check_operands(a, b, name_of(op));
  const NoGradGuard no_grad;
  const DType dtype = result_type(a, b);
  return run_binary(op, a.to(dtype), b.to(dtype));
}

template <BinaryOp op>
Tensor compare(const Tensor& x, const Scalar& scalar) {
  check<ValueError>(x.defined(), name_of(op),
                    "the tensor must be defined; got an empty Tensor handle");
  const NoGradGuard no_grad;
  return run_scalar(op, x.to(result_type(x, scalar)), scalar.value(), false);
}

int category(DType dtype) {
  if (dtype == DType::bool_) return 0;
  return is_floating_point(dtype) ? 2 : 1;
}

}  // namespace

DType result_type(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) return a.dtype();
  if ((a.dim() == 0) == (b.dim() == 0)) return promote_types(a.dtype(), b.dtype());
  const DType dimensioned = a.dim() == 0 ? b.dtype() : a.dtype();
  const DType zero_dim = a.dim() == 0 ? a.dtype() : b.dtype();
  return category(zero_dim) > category(dimensioned) ? zero_dim : dimensioned;
}

DType result_type(const Tensor& a, const Scalar& b) {
  if (a.is_floating_point()) return a.dtype();
  if (!b.is_integral()) return float32;
  return a.dtype() == DType::bool_ ? int64 : a.dtype();
}

namespace detail {

Scalar factor_for(DType dtype, double factor, const char* operation) {
  if (is_floating_point(dtype)) return factor;
  check<DTypeError>(std::nearbyint(factor) == factor && std::abs(factor) < 0x1p63, operation,
                    "a tensor of {} takes whole numbers only; got {}; convert it with .to(float32)",
                    dtype, factor);
  return static_cast<std::int64_t>(factor);
}

}  // namespace detail

Tensor add(const Tensor& a, const Tensor& b) { return arithmetic<BinaryOp::add>(a, b); }
Tensor add(const Tensor& a, const Scalar& b) { return arithmetic<BinaryOp::add>(a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return arithmetic<BinaryOp::sub>(a, b); }
Tensor sub(const Tensor& a, const Scalar& b) { return arithmetic<BinaryOp::sub>(a, b); }
Tensor sub(const Scalar& a, const Tensor& b) { return arithmetic<BinaryOp::sub>(b, a, true); }
Tensor mul(const Tensor& a, const Tensor& b) { return arithmetic<BinaryOp::mul>(a, b); }
Tensor mul(const Tensor& a, const Scalar& b) { return arithmetic<BinaryOp::mul>(a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return arithmetic<BinaryOp::div>(a, b); }
Tensor div(const Tensor& a, const Scalar& b) { return arithmetic<BinaryOp::div>(a, b); }
Tensor div(const Scalar& a, const Tensor& b) { return arithmetic<BinaryOp::div>(b, a, true); }
Tensor maximum(const Tensor& a, const Tensor& b) { return arithmetic<BinaryOp::maximum>(a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return arithmetic<BinaryOp::minimum>(a, b); }
Tensor pow(const Tensor& base, const Tensor& exponent) {
  return arithmetic<BinaryOp::pow>(base, exponent);
}
Tensor pow(const Tensor& base, const Scalar& exponent) {
  check<ValueError>(
      !base.defined() || base.is_floating_point() || !exponent.is_integral() ||
          exponent.value() >= 0.0,
      "pow", "an integer tensor needs an exponent >= 0; got {}; convert it with .to(float32)",
      exponent.value());
  return arithmetic<BinaryOp::pow>(base, exponent);
}
Tensor pow(const Scalar& base, const Tensor& exponent) {
  return arithmetic<BinaryOp::pow>(exponent, base, true);
}

Tensor eq(const Tensor& a, const Tensor& b) { return compare<BinaryOp::eq>(a, b); }
Tensor eq(const Tensor& a, const Scalar& b) { return compare<BinaryOp::eq>(a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compare<BinaryOp::ne>(a, b); }
Tensor ne(const Tensor& a, const Scalar& b) { return compare<BinaryOp::ne>(a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare<BinaryOp::lt>(a, b); }
Tensor lt(const Tensor& a, const Scalar& b) { return compare<BinaryOp::lt>(a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compare<BinaryOp::le>(a, b); }
Tensor le(const Tensor& a, const Scalar& b) { return compare<BinaryOp::le>(a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compare<BinaryOp::gt>(a, b); }
Tensor gt(const Tensor& a, const Scalar& b) { return compare<BinaryOp::gt>(a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return compare<BinaryOp::ge>(a, b); }
Tensor ge(const Tensor& a, const Scalar& b) { return compare<BinaryOp::ge>(a, b); }
Tensor logical_and(const Tensor& a, const Tensor& b) {
  return compare<BinaryOp::logical_and>(a, b);
}
Tensor logical_or(const Tensor& a, const Tensor& b) { return compare<BinaryOp::logical_or>(a, b); }
Tensor logical_xor(const Tensor& a, const Tensor& b) {
  check_operands(a, b, "logical_xor");
  broadcast_shapes(a.shape(), b.shape(), "logical_xor");  // the error must name this operation
  return ne(logical_not(logical_not(a)), logical_not(logical_not(b)));
}

}  // namespace norma
