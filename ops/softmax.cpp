#include "norma/ops/softmax.h"

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/ops/backend.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduction.h"
#include "norma/ops/rows.h"

namespace norma {

namespace {

/// Along the last dimension of a contiguous tensor.
template <bool log>
struct Softmax : Function<Softmax<log>> {
  static constexpr const char* name = log ? "log_softmax" : "softmax";

  static Tensor forward(Context& ctx, const Tensor& x) {
    Tensor out = empty_like(x);
    backend(x).softmax(detail::as_rows(x), log, detail::as_rows(out));
    if (ctx.is_recording()) ctx.save_for_backward({out});
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    const Tensor y = ctx.saved_tensor(0);
    if (GradMode::is_enabled()) {
      if constexpr (log)
        return {grad_output - exp(y) * grad_output.sum({-1}, true)};
      else
        return {y * (grad_output - (grad_output * y).sum({-1}, true))};
    }
    Tensor dx = empty_like(y);
    backend(y).softmax_backward(detail::as_rows(y), detail::as_rows(grad_output.contiguous()), log,
                                detail::as_rows(dx));
    return {dx};
  }
};

template <bool log>
Tensor run(const Tensor& x, std::int64_t dim) {
  const char* name = Softmax<log>::name;
  check<ValueError>(x.defined(), name, "the input must be defined; got an empty Tensor handle");
  check<DTypeError>(x.is_floating_point(), name,
                    "needs a floating-point tensor; got {}; convert with .to(float32)", x.dtype());
  dim = normalize_dim(dim, x.dim(), name);
  if (x.dim() == 0) return Softmax<log>::apply(x.reshape({1})).reshape({});
  const std::int64_t last = x.dim() - 1;
  if (dim == last) return Softmax<log>::apply(x.contiguous());
  return Softmax<log>::apply(x.transpose(dim, last).contiguous()).transpose(dim, last).contiguous();
}

/// x minus its maximum, which is a constant to the tape.
Tensor shifted(const Tensor& x, std::int64_t dim) {
  return x.numel() == 0 ? x : x - amax(x.detach(), {dim}, true);
}

}  // namespace

Tensor softmax(const Tensor& x, std::int64_t dim) { return run<false>(x, dim); }
Tensor log_softmax(const Tensor& x, std::int64_t dim) { return run<true>(x, dim); }

namespace composite {

Tensor softmax(const Tensor& x, std::int64_t dim) {
  const Tensor exponentials = exp(shifted(detail::in_accumulate_type(x), dim));
  return (exponentials / exponentials.sum({dim}, true)).to(x.dtype());
}

Tensor log_softmax(const Tensor& x, std::int64_t dim) {
  const Tensor safe = shifted(detail::in_accumulate_type(x), dim);
  return (safe - log(exp(safe).sum({dim}, true))).to(x.dtype());
}

}  // namespace composite

}  // namespace norma
