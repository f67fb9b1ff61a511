#include "unit_rows.h"

#include "unit_rows_launch.h"

namespace custom_op {

using namespace norma;

namespace {

struct UnitRows : Function<UnitRows> {
  static constexpr const char* name = "unit_rows";

  static Tensor forward(Context& ctx, const Tensor& x, double eps) {
    const Tensor y = empty_like(x);
    const Tensor length = empty({x.size(0)}, {.device = x.device()});
    launch_forward(x.data<float>(), x.size(0), x.size(1), static_cast<float>(eps), y.data<float>(),
                   length.data<float>());
    ctx.save_for_backward({y, length});
    return y;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor dy = grad_output.contiguous();
    const Tensor dx = empty_like(dy);
    launch_backward(saved[0].data<float>(), saved[1].data<float>(), dy.data<float>(), dy.size(0),
                    dy.size(1), dx.data<float>());
    return {dx};
  }
};

}  // namespace

Tensor unit_rows(const Tensor& x, double eps) {
  check<ShapeError>(x.dim() == 2, "unit_rows", "the input must be [rows, width]; got {}",
                    x.shape());
  check<DTypeError>(x.dtype() == float32, "unit_rows",
                    "the input must be float32; got {}; convert with .to(float32)", x.dtype());
  return UnitRows::apply(x.contiguous(), eps);
}

}  // namespace custom_op
