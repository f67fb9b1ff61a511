#include "norma/cuda/kernels/dual_norm.h"

#include "norma/core/factory.h"
#include "norma/cuda/runtime/backend.h"
#include "norma/cuda/runtime/pointers.h"

namespace norma::cuda_kernels {

namespace {

RowNormShape shape_of(const Tensor& x) {
  return {.rows = x.size(0), .width = x.size(1), .weight_rows = 1, .columns = x.size(1)};
}

void forward(const Tensor& x, const Tensor& weight1, const Tensor& bias1, const Tensor& weight2,
             const Tensor& bias2, const RowNormParams& p, const Tensor& out1, const Tensor& out2,
             const Tensor& mean, const Tensor& rstd) {
  visit_floating(x.dtype(), "dual_norm", [&]<class T>(TypeTag<T>) {
    using C = statistic_t<T>;
    dual_norm<T>({.shape = shape_of(x),
                  .params = p,
                  .x = x.data<T>(),
                  .weight = {pointer<T>(weight1), pointer<T>(weight2)},
                  .bias = {pointer<T>(bias1), pointer<T>(bias2)},
                  .out = {out1.data<T>(), out2.data<T>()},
                  .mean = pointer<C>(mean),
                  .rstd = pointer<C>(rstd)},
                 nullptr);
  });
}

void backward(const Tensor& x, const Tensor& weight1, const Tensor& weight2, const Tensor& mean,
              const Tensor& rstd, const Tensor& dy1, const Tensor& dy2, const RowNormParams& p,
              const Tensor& dx, const Tensor& dweight1, const Tensor& dbias1,
              const Tensor& dweight2, const Tensor& dbias2) {
  visit_floating(x.dtype(), "dual_norm_backward", [&]<class T>(TypeTag<T>) {
    using C = statistic_t<T>;
    const RowNormShape shape = shape_of(x);
    const Tensor workspace =
        empty({dual_norm_workspace(shape)}, {.dtype = dtype_of<C>, .device = x.device()});
    dual_norm_backward<T>({.shape = shape,
                           .params = p,
                           .x = x.data<T>(),
                           .weight = {pointer<T>(weight1), pointer<T>(weight2)},
                           .mean = pointer<C>(mean),
                           .rstd = rstd.data<C>(),
                           .dy = {dy1.data<T>(), dy2.data<T>()},
                           .dx = pointer<T>(dx),
                           .dweight = {pointer<T>(dweight1), pointer<T>(dweight2)},
                           .dbias = {pointer<T>(dbias1), pointer<T>(dbias2)},
                           .workspace = workspace.data<C>()},
                          nullptr);
  });
}

}  // namespace

void add_dual_norm_kernels(Backend& table) {
  table.dual_norm = forward;
  table.dual_norm_backward = backward;
}

}  // namespace norma::cuda_kernels
