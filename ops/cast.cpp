#include "norma/ops/cast.h"

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/core/required_ops.h"

namespace norma {

namespace {

struct Cast : Function<Cast> {
  static constexpr const char* name = "to";
  static Tensor forward(Context& ctx, const Tensor& x, DType dtype) {
    ctx.set("dtype", x.dtype());
    Tensor out = empty(x.shape(), {.dtype = dtype, .device = x.device()});
    detail::copy(out, x);
    return out;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    return {to(grad, ctx.get<DType>("dtype"))};
  }
};

struct ToDevice : Function<ToDevice> {
  static constexpr const char* name = "to";
  static Tensor forward(Context& ctx, const Tensor& x, const Device& device) {
    ctx.set("device", x.device());
    Tensor out = empty(x.shape(), {.dtype = x.dtype(), .device = device});
    detail::copy(out, x);
    return out;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    return {to(grad, ctx.get<Device>("device"))};
  }
};

}  // namespace

Tensor to(const Tensor& input, DType dtype) {
  if (input.dtype() == dtype) return input;
  if (is_floating_point(dtype)) return Cast::apply(input, dtype);
  const NoGradGuard no_grad;  // no derivative into integers
  return Cast::apply(input, dtype);
}

Tensor to(const Tensor& input, const Device& device) {
  return input.device() == device ? input : ToDevice::apply(input, device);
}

}  // namespace norma
