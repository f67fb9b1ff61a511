#include "norma/ops/rope.h"

#include <cmath>

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/ops/backend.h"
#include "norma/ops/cast.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/index.h"
#include "norma/ops/layout.h"
#include "norma/ops/view.h"

namespace norma {

namespace {

/// The form of the kernel, [batch, heads, length, width]; a view wherever the layout allows one.
Tensor as_heads(const Tensor& x) {
  switch (x.dim()) {
    case 2:
      return x.unsqueeze(0).unsqueeze(0);
    case 3:
      return x.unsqueeze(1);
    case 4:
      return x;
    default:
      break;
  }
  const Shape outer(x.shape().begin(), x.shape().end() - 2);
  return x.reshape({outer.numel(), 1, x.size(-2), x.size(-1)});
}

/// Tables in the type in which x is rotated.
Tensor table_for(const Tensor& x, const Tensor& table) {
  return table.to(x.dtype() == float64 ? float64 : float32).contiguous();
}

struct Rope : Function<Rope> {
  static constexpr const char* name = "apply_rope";

  static Tensor forward(Context& ctx, const Tensor& x, const Tensor& cos, const Tensor& sin,
                        bool interleaved, bool inverse) {
    ctx.save_for_backward({cos, sin});
    ctx.set("interleaved", interleaved);
    ctx.set("inverse", inverse);
    // Five dimensions and more only stay together in one order.
    const Tensor input = x.dim() > 4 ? x.contiguous() : detail::with_adjacent_columns(x);
    const Tensor out = detail::empty_in_order_of(input);
    if (out.numel() > 0)
      backend(x).rope(as_heads(input), table_for(x, cos), table_for(x, sin), interleaved, inverse,
                      as_heads(out));
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    return {Rope::apply(grad_output, ctx.saved_tensor(0), ctx.saved_tensor(1),
                        ctx.get<bool>("interleaved"), !ctx.get<bool>("inverse")),
            {},
            {}};
  }
};

void check_rope(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  check<ValueError>(x.defined() && cos.defined() && sin.defined(), "apply_rope",
                    "x, cos and sin must be defined; got an undefined tensor");
  check<DTypeError>(x.is_floating_point(), "apply_rope",
                    "x must be floating point; got {}; convert with .to(float32)", x.dtype());
  check<DTypeError>(cos.is_floating_point() && sin.is_floating_point(), "apply_rope",
                    "cos and sin must be floating point; got {} and {}", cos.dtype(), sin.dtype());
  check<DeviceError>(
      cos.device() == x.device() && sin.device() == x.device(), "apply_rope",
      "x, cos and sin must be on one device; got {}, {} and {}; move the tables once "
      "with .to(device)",
      x.device(), cos.device(), sin.device());
  check<ShapeError>(x.dim() >= 2, "apply_rope", "x must be [..., length, head_dim]; got {}",
                    x.shape());
  check<ShapeError>(cos.dim() == 2 && cos.shape() == sin.shape(), "apply_rope",
                    "cos and sin must be [length, rotary_dim / 2] alike; got {} and {}",
                    cos.shape(), sin.shape());
  check<ShapeError>(cos.size(0) == x.size(-2), "apply_rope",
                    "cos and sin must have one row for each position of x, {}; got {}; narrow the "
                    "tables, or is x [batch, length, heads, head_dim]?",
                    x.size(-2), cos.size(0));
  check<ShapeError>(2 * cos.size(1) <= x.size(-1), "apply_rope",
                    "rotary_dim must be at most head_dim = {}; got {}", x.size(-1),
                    2 * cos.size(1));
  check<ValueError>(
      !cos.requires_grad() && !sin.requires_grad(), "apply_rope",
      "cos and sin must be constants; got tables that require grad; detach() them, or "
      "use composite::apply_rope to learn them");
}

}  // namespace

RopeTables rope_tables(std::int64_t length, std::int64_t rotary_dim, double base,
                       std::int64_t offset, const TensorOptions& options) {
  check<ValueError>(rotary_dim > 0 && rotary_dim % 2 == 0, "rope_tables",
                    "rotary_dim must be even and positive; got {}", rotary_dim);
  check<ValueError>(length >= 0 && offset >= 0, "rope_tables",
                    "length and offset must not be negative; got {} and {}", length, offset);
  check<ValueError>(std::isfinite(base) && base > 0.0, "rope_tables",
                    "base must be positive and finite; got {}", base);
  const std::int64_t half = rotary_dim / 2;
  const Tensor cos_table = empty({length, half}, {.dtype = float64});
  const Tensor sin_table = empty({length, half}, {.dtype = float64});
  double* cos_values = cos_table.data<double>();
  double* sin_values = sin_table.data<double>();
  for (std::int64_t p = offset; p < offset + length; ++p) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim);
      const double angle = static_cast<double>(p) * std::pow(base, exponent);
      *cos_values++ = std::cos(angle);
      *sin_values++ = std::sin(angle);
    }
  }
  const auto finished = [&](const Tensor& table) {
    Tensor result = table.to(options.dtype.value_or(float32)).to(options.device);
    return options.requires_grad ? result.requires_grad_() : result;
  };
  return {finished(cos_table), finished(sin_table)};
}

Tensor apply_rope(const Tensor& x, const Tensor& cos, const Tensor& sin,
                  const RopeOptions& options) {
  check_rope(x, cos, sin);
  return Rope::apply(x, cos, sin, options.interleaved, false);
}

namespace composite {

Tensor apply_rope(const Tensor& x, const Tensor& cos, const Tensor& sin,
                  const RopeOptions& options) {
  const std::int64_t half = cos.size(-1), rotary = 2 * half;
  const DType wide = x.dtype() == float64 ? float64 : float32;
  const Tensor c = cos.to(wide), s = sin.to(wide);
  const Tensor rotated = x.narrow(-1, 0, rotary).to(wide);
  Shape pair_shape = rotated.shape();
  pair_shape.back() = options.interleaved ? half : 2;
  pair_shape.push_back(options.interleaved ? 2 : half);
  const Tensor pairs = rotated.reshape(pair_shape);
  const std::int64_t dim = options.interleaved ? -1 : -2;
  const Tensor a = pairs.select(dim, 0), b = pairs.select(dim, 1);
  const Tensor result =
      stack({a * c - b * s, b * c + a * s}, dim).reshape(rotated.shape()).to(x.dtype());
  if (rotary == x.size(-1)) return result;
  return cat({result, x.narrow(-1, rotary, x.size(-1) - rotary)}, -1);
}

}  // namespace composite

}  // namespace norma
