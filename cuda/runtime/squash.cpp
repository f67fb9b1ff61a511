#include "norma/cuda/kernels/squash.h"

#include "norma/core/factory.h"
#include "norma/cuda/runtime/backend.h"
#include "norma/cuda/runtime/pointers.h"

namespace norma::cuda_kernels {

namespace {

/// The columns are those of the first tensor that is defined.
RowNormShape shape_of(const Tensor& x, std::initializer_list<const Tensor*> affine) {
  RowNormShape shape{.rows = x.size(0), .width = x.size(1), .columns = x.size(1)};
  for (const Tensor* tensor : affine) {
    if (!tensor->defined()) continue;
    shape.columns = tensor->numel();
    break;
  }
  return shape;
}

void forward(Squash curve, const Tensor& x, const Tensor& alpha, const Tensor& shift,
             const Tensor& weight, const Tensor& bias, const Tensor& out) {
  visit_floating(x.dtype(), "squash", [&]<class T>(TypeTag<T>) {
    squash<T>({.curve = curve,
               .shape = shape_of(x, {&weight, &bias}),
               .x = x.data<T>(),
               .alpha = pointer<T>(alpha),
               .shift = pointer<T>(shift),
               .weight = pointer<T>(weight),
               .bias = pointer<T>(bias),
               .out = out.data<T>()},
              nullptr);
  });
}

void backward(Squash curve, const Tensor& x, const Tensor& alpha, const Tensor& shift,
              const Tensor& weight, const Tensor& dy, const Tensor& dx, const Tensor& dalpha,
              const Tensor& dshift, const Tensor& dweight, const Tensor& dbias) {
  visit_floating(x.dtype(), "squash_backward", [&]<class T>(TypeTag<T>) {
    using C = statistic_t<T>;
    const RowNormShape shape = shape_of(x, {&weight, &dweight, &dbias});
    const Tensor workspace =
        empty({squash_workspace(shape)}, {.dtype = dtype_of<C>, .device = x.device()});
    squash_backward<T>({.curve = curve,
                        .shape = shape,
                        .x = x.data<T>(),
                        .alpha = pointer<T>(alpha),
                        .shift = pointer<T>(shift),
                        .weight = pointer<T>(weight),
                        .dy = dy.data<T>(),
                        .dx = pointer<T>(dx),
                        .dalpha = pointer<T>(dalpha),
                        .dshift = pointer<T>(dshift),
                        .dweight = pointer<T>(dweight),
                        .dbias = pointer<T>(dbias),
                        .workspace = workspace.data<C>()},
                       nullptr);
  });
}

}  // namespace

void add_squash_kernels(Backend& table) {
  table.squash = forward;
  table.squash_backward = backward;
}

}  // namespace norma::cuda_kernels
