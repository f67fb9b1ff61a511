#include "norma/ops/layout.h"

#include <algorithm>

#include "norma/core/grad_mode.h"
#include "norma/core/tensor_impl.h"

namespace norma::detail {

Tensor empty_in_order_of(const Tensor& x) {
  const Tensor plain = make_tensor(x.shape(), x.dtype(), x.device());
  if (x.is_contiguous() || x.numel() == 0) return plain;
  Shape order;  // dimensions, outermost in memory first
  for (std::int64_t d = 0; d < x.dim(); ++d) {
    if (x.strides()[d] == 0 && x.shape()[d] > 1) return plain;
    order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return x.strides()[a] > x.strides()[b]; });
  Shape strides = x.strides();
  std::int64_t step = 1;
  for (std::int64_t i = x.dim() - 1; i >= 0; --i) {
    strides[order[i]] = step;
    step *= std::max<std::int64_t>(x.shape()[order[i]], 1);
  }
  // Not a view: nothing else has this storage.
  return Tensor(std::make_shared<TensorImpl>(plain.storage(), x.dtype(), x.shape(), strides, 0));
}

Tensor with_adjacent_columns(const Tensor& x) {
  const bool adjacent = x.size(-1) <= 1 || x.stride(-1) == 1;
  const bool apart = x.size(-2) <= 1 || x.stride(-2) >= std::max<std::int64_t>(x.size(-1), 1);
  if (adjacent && apart) return x;
  NoGradGuard no_grad;
  return x.contiguous();
}

}  // namespace norma::detail
