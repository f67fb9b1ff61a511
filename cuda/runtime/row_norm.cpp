#include "norma/cuda/kernels/row_norm.h"

#include "norma/core/factory.h"
#include "norma/cuda/kernels/row_norm_plan.h"
#include "norma/cuda/runtime/backend.h"
#include "norma/cuda/runtime/pointers.h"

namespace norma::cuda_kernels {

namespace {

/// Weight and bias are [W, C] where there are any, as are their gradients.
RowNormShape shape_of(const Tensor& x, std::initializer_list<const Tensor*> affine) {
  RowNormShape shape{.rows = x.size(0), .width = x.size(1), .columns = x.size(1)};
  for (const Tensor* tensor : affine) {
    if (!tensor->defined()) continue;
    shape.weight_rows = tensor->size(0);
    shape.columns = tensor->size(1);
    break;
  }
  return shape;
}

void forward(const Tensor& x, const Tensor& residual, const Tensor& weight, const Tensor& bias,
             const RowNormParams& p, const Tensor& out, const Tensor& sum, const Tensor& mean,
             const Tensor& rstd) {
  visit_floating(x.dtype(), "row_norm", [&]<class T>(TypeTag<T>) {
    using C = statistic_t<T>;
    row_norm_forward<T>({.shape = shape_of(x, {&weight, &bias}),
                         .params = p,
                         .x = x.data<T>(),
                         .residual = pointer<T>(residual),
                         .weight = pointer<T>(weight),
                         .bias = pointer<T>(bias),
                         .out = out.data<T>(),
                         .sum = pointer<T>(sum),
                         .mean = pointer<C>(mean),
                         .rstd = pointer<C>(rstd)},
                        nullptr);
  });
}

void backward(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& rstd,
              const Tensor& dy, const Tensor& dsum, const RowNormParams& p, const Tensor& dx,
              const Tensor& dresidual, const Tensor& dweight, const Tensor& dbias) {
  visit_floating(x.dtype(), "row_norm_backward", [&]<class T>(TypeTag<T>) {
    using C = statistic_t<T>;
    const RowNormShape shape = shape_of(x, {&weight, &dweight, &dbias});
    Tensor workspace;
    if (dweight.defined() || dbias.defined())
      workspace = empty({workspace_elements(shape)}, {.dtype = dtype_of<C>, .device = x.device()});
    row_norm_backward<T>({.shape = shape,
                          .params = p,
                          .x = x.data<T>(),
                          .weight = pointer<T>(weight),
                          .mean = pointer<C>(mean),
                          .rstd = rstd.data<C>(),
                          .dy = dy.data<T>(),
                          .dsum = pointer<T>(dsum),
                          .dx = pointer<T>(dx),
                          .dresidual = pointer<T>(dresidual),
                          .dweight = pointer<T>(dweight),
                          .dbias = pointer<T>(dbias),
                          .workspace = pointer<C>(workspace)},
                         nullptr);
  });
}

}  // namespace

void add_row_norm_kernels(Backend& table) {
  table.row_norm = forward;
  table.row_norm_backward = backward;
}

}  // namespace norma::cuda_kernels
