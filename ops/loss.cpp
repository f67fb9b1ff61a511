#include "norma/ops/loss.h"

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/ops/activation.h"
#include "norma/ops/backend.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/index.h"
#include "norma/ops/reduction.h"
#include "norma/ops/rows.h"
#include "norma/ops/softmax.h"

namespace norma {

namespace {

/// A classification loss seen as rows: input [rows, classes], target [rows].
struct Rows {
  Tensor input;
  Tensor target;
  Shape target_shape;  ///< of the losses before reduction
  Tensor weight;       ///< detached, or undefined
};

/// input [C], [N, C] or [N, C, d1, …] as [rows, C], differentiably.
Tensor classes_last(const Tensor& input) {
  if (input.dim() == 1) return input.reshape({1, input.size(0)});
  if (input.dim() == 2) return input;
  Shape order;
  for (std::int64_t i = 0; i < input.dim(); ++i)
    if (i != 1) order.push_back(i);
  order.push_back(1);
  const Tensor moved = input.permute(order);
  return moved.reshape({moved.numel() / std::max<std::int64_t>(input.size(1), 1), input.size(1)});
}

void check_shapes(const char* name, const Tensor& input, const Tensor& target) {
  check<ValueError>(input.defined() && target.defined(), name,
                    "input and target must be defined; got an empty Tensor handle");
  check<DTypeError>(input.is_floating_point(), name,
                    "input must be floating point; got {}; convert with .to(float32)",
                    input.dtype());
  check<DTypeError>(target.dtype() == int64, name,
                    "target must hold class indices in int64; got {}; convert with .to(int64)",
                    target.dtype());
  check<DeviceError>(input.device() == target.device(), name,
                     "input and target must be on one device; got {} and {}", input.device(),
                     target.device());
  check<ShapeError>(input.dim() >= 1, name,
                    "input must be [C], [N, C] or [N, C, d1, ...]; got a scalar");
  Shape expected = input.shape();
  expected.erase(input.dim() == 1 ? 0 : 1);
  check<ShapeError>(
      target.shape() == expected, name,
      "target must have the shape {} of an input {} without its class dimension; got {}", expected,
      input.shape(), target.shape());
}

/// Every target that is not ignored names a class.
void check_range(const char* name, const Tensor& target, std::int64_t classes,
                 std::int64_t ignore_index) {
  if (target.numel() == 0) return;
  // Ignored rows stand in with class 0, which is in range unless there are no classes and no row
  // counts.
  const Tensor counted = masked_fill(target, target == ignore_index, 0);
  std::int64_t low = 0;
  std::int64_t high = 0;
  backend(target).index_range(counted, &low, &high);
  check<IndexError>(low >= 0 && high < std::max<std::int64_t>(classes, 1), name,
                    "target must hold class indices in [0, {}) or ignore_index = {}; got {}; check "
                    "the labels, or set ignore_index",
                    classes, ignore_index, low < 0 ? low : high);
}

Rows as_rows(const char* name, const Tensor& input, const Tensor& target, const Tensor& weight,
             std::int64_t ignore_index) {
  check_shapes(name, input, target);
  const Tensor rows = classes_last(input);
  const std::int64_t classes = rows.size(1);
  Tensor factors;
  if (weight.defined()) {
    check<ShapeError>(weight.shape() == Shape{classes}, name,
                      "weight must have one factor for each of {} classes; got shape {}", classes,
                      weight.shape());
    check<DTypeError>(weight.dtype() == input.dtype(), name,
                      "weight must have the input's dtype {}; got {}", input.dtype(),
                      weight.dtype());
    check<DeviceError>(weight.device() == input.device(), name,
                       "weight must be on the input's device {}; got {}", input.device(),
                       weight.device());
    factors = weight.detach().contiguous();
  }
  const Tensor flat = target.contiguous().reshape({target.numel()});
  check_range(name, flat, classes, ignore_index);
  return {rows.contiguous(), flat, target.shape(), factors};
}

/// [rows] factor of each row: its class weight, 0 where ignored. In the accumulate type.
Tensor row_weights(const Rows& rows, std::int64_t ignore_index) {
  const NoGradGuard no_grad;
  const Tensor ignored = rows.target == ignore_index;
  const DType dtype = detail::accumulate_dtype(rows.input.dtype());
  if (!rows.weight.defined()) return logical_not(ignored).to(dtype);
  const Tensor safe = masked_fill(rows.target, ignored, 0);
  return masked_fill(gather(rows.weight.to(dtype), 0, safe), ignored, 0.0);
}

/// `losses` [rows] in the accumulate type, as the caller wants them.
Tensor reduce_rows(const Tensor& losses, const Rows& rows, Reduction reduction,
                   std::int64_t ignore_index) {
  const DType dtype = rows.input.dtype();
  if (reduction == Reduction::none) return losses.to(dtype).reshape(rows.target_shape);
  const Tensor total = losses.sum();
  if (reduction == Reduction::sum) return total.to(dtype);
  return (total / row_weights(rows, ignore_index).sum()).to(dtype);
}

/// `losses` in the accumulate type, as the caller wants them: in `dtype`.
Tensor reduce_elements(const Tensor& losses, Reduction reduction, DType dtype) {
  if (reduction == Reduction::none) return losses.to(dtype);
  return (reduction == Reduction::sum ? losses.sum() : losses.mean()).to(dtype);
}

void check_smoothing(double label_smoothing) {
  check<ValueError>(label_smoothing >= 0.0 && label_smoothing <= 1.0, "cross_entropy",
                    "label_smoothing must be in [0, 1]; got {}", label_smoothing);
}

/// The definition, on rows: losses [rows] in the accumulate type.
Tensor composite_rows(const Tensor& input, const Rows& rows, std::int64_t ignore_index,
                      double label_smoothing) {
  const Tensor log_probabilities = composite::log_softmax(detail::in_accumulate_type(input), 1);
  const Tensor ignored = rows.target == ignore_index;
  const Tensor safe = masked_fill(rows.target, ignored, 0);
  const Tensor picked = gather(log_probabilities, 1, safe.unsqueeze(1)).squeeze(1);
  Tensor losses = picked * row_weights(rows, ignore_index) * (label_smoothing - 1.0);
  if (label_smoothing > 0.0) {
    const Tensor weighted = rows.weight.defined()
                                ? log_probabilities * detail::in_accumulate_type(rows.weight)
                                : log_probabilities;
    losses = losses - weighted.sum({1}) * (label_smoothing / static_cast<double>(input.size(1)));
  }
  // An ignored row may hold anything, inf too: the fill cuts it off in both directions.
  return masked_fill(losses, ignored, 0.0);
}

/// Losses [rows] of logits [rows, classes], in the accumulate type.
struct CrossEntropy : Function<CrossEntropy> {
  static constexpr const char* name = "cross_entropy";

  static Tensor forward(Context& ctx, const Tensor& input, const Tensor& target,
                        const Tensor& weight, std::int64_t ignore_index, double label_smoothing) {
    const TensorOptions options{.dtype = detail::accumulate_dtype(input.dtype()),
                                .device = input.device()};
    Tensor losses = empty({input.size(0)}, options);
    Tensor logsumexp = empty({input.size(0)}, options);
    backend(input).cross_entropy(input, target, weight, ignore_index, label_smoothing, losses,
                                 logsumexp);
    if (ctx.is_recording()) {
      ctx.save_for_backward({input, target, weight, logsumexp});
      ctx.set("ignore_index", ignore_index);
      ctx.set("label_smoothing", label_smoothing);
    }
    return losses;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const TensorList saved = ctx.saved_tensors();
    const Tensor& input = saved[0];
    const auto ignore_index = ctx.get<std::int64_t>("ignore_index");
    const auto label_smoothing = ctx.get<double>("label_smoothing");
    if (GradMode::is_enabled()) {
      const Rows rows{input, saved[1], saved[1].shape(), saved[2]};
      const auto twin = [&](const TensorList& in) {
        return TensorList{composite_rows(in[0], rows, ignore_index, label_smoothing)};
      };
      return {composite_backward(twin, {input}, {grad_output})[0], Tensor(), Tensor()};
    }
    Tensor dinput = empty_like(input);
    backend(input).cross_entropy_backward(input, saved[1], saved[2], ignore_index, label_smoothing,
                                          saved[3], grad_output.contiguous(), dinput);
    return {dinput, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor cross_entropy(const Tensor& input, const Tensor& target,
                     const CrossEntropyOptions& options) {
  check_smoothing(options.label_smoothing);
  const Rows rows = as_rows("cross_entropy", input, target, options.weight, options.ignore_index);
  const Tensor losses = CrossEntropy::apply(rows.input, rows.target, rows.weight,
                                            options.ignore_index, options.label_smoothing);
  return reduce_rows(losses, rows, options.reduction, options.ignore_index);
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const NllLossOptions& options) {
  const Rows rows = as_rows("nll_loss", input, target, options.weight, options.ignore_index);
  const Tensor ignored = rows.target == options.ignore_index;
  const Tensor safe = masked_fill(rows.target, ignored, 0);
  const Tensor picked =
      detail::in_accumulate_type(gather(rows.input, 1, safe.unsqueeze(1)).squeeze(1));
  const Tensor losses =
      masked_fill(-(picked * row_weights(rows, options.ignore_index)), ignored, 0.0);
  return reduce_rows(losses, rows, options.reduction, options.ignore_index);
}

namespace {

void check_pair(const char* name, const Tensor& input, const Tensor& target) {
  check<ValueError>(input.defined() && target.defined(), name,
                    "input and target must be defined; got an empty Tensor handle");
  check<ShapeError>(input.shape() == target.shape(), name,
                    "input and target must have one shape; got {} and {}; reshape one of them",
                    input.shape(), target.shape());
  check<DTypeError>(input.is_floating_point() && target.is_floating_point(), name,
                    "input and target must be floating point; got {} and {}; convert with "
                    ".to(float32)",
                    input.dtype(), target.dtype());
}

}  // namespace

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyOptions& options) {
  constexpr const char* name = "binary_cross_entropy_with_logits";
  check_pair(name, input, target);
  DType dtype = result_type(input, target);
  for (const Tensor& factor : {options.weight, options.pos_weight}) {
    if (factor.defined()) dtype = promote_types(dtype, factor.dtype());
    check<ShapeError>(!factor.defined() || is_expandable_to(factor.shape(), input.shape()), name,
                      "weight and pos_weight must broadcast to the input's shape {}; got {}",
                      input.shape(), factor.defined() ? factor.shape() : Shape{});
  }
  // -log s(x) = softplus(-x) and -log(1 - s(x)) = x + softplus(-x).
  const Tensor x = detail::in_accumulate_type(input);
  const Tensor y = detail::in_accumulate_type(target);
  const Tensor negative_log = softplus(-x);
  Tensor losses = (1.0 - y) * x;
  if (options.pos_weight.defined())
    losses =
        losses + (1.0 + (detail::in_accumulate_type(options.pos_weight) - 1.0) * y) * negative_log;
  else
    losses = losses + negative_log;
  if (options.weight.defined()) losses = losses * detail::in_accumulate_type(options.weight);
  return reduce_elements(losses, options.reduction, dtype);
}

Tensor mse_loss(const Tensor& input, const Tensor& target, const MseLossOptions& options) {
  check_pair("mse_loss", input, target);
  const Tensor difference = detail::in_accumulate_type(input) - detail::in_accumulate_type(target);
  return reduce_elements(square(difference), options.reduction, result_type(input, target));
}

namespace composite {

Tensor cross_entropy(const Tensor& input, const Tensor& target,
                     const CrossEntropyOptions& options) {
  check_smoothing(options.label_smoothing);
  const Rows rows = as_rows("cross_entropy", input, target, options.weight, options.ignore_index);
  const Tensor losses =
      composite_rows(rows.input, rows, options.ignore_index, options.label_smoothing);
  return reduce_rows(losses, rows, options.reduction, options.ignore_index);
}

}  // namespace composite

}  // namespace norma
