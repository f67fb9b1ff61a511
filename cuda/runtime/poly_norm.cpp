#include "norma/cuda/kernels/poly_norm.h"

#include "norma/core/factory.h"
#include "norma/cuda/runtime/backend.h"
#include "norma/cuda/runtime/pointers.h"

namespace norma::cuda_kernels {

namespace {

void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
             const Tensor& out, const Tensor& rstd) {
  visit_floating(x.dtype(), "poly_norm", [&]<class T>(TypeTag<T>) {
    poly_norm<T>({.rows = x.size(0),
                  .width = x.size(1),
                  .eps = eps,
                  .x = x.data<T>(),
                  .weight = weight.data<T>(),
                  .bias = pointer<T>(bias),
                  .out = out.data<T>(),
                  .rstd = pointer<statistic_t<T>>(rstd)},
                 nullptr);
  });
}

void backward(const Tensor& x, const Tensor& weight, const Tensor& rstd, const Tensor& dy,
              const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  visit_floating(x.dtype(), "poly_norm_backward", [&]<class T>(TypeTag<T>) {
    using C = statistic_t<T>;
    const Tensor workspace =
        empty({poly_norm_workspace(x.size(0))}, {.dtype = dtype_of<C>, .device = x.device()});
    poly_norm_backward<T>({.rows = x.size(0),
                           .width = x.size(1),
                           .x = x.data<T>(),
                           .weight = weight.data<T>(),
                           .rstd = rstd.data<C>(),
                           .dy = dy.data<T>(),
                           .dx = pointer<T>(dx),
                           .dweight = pointer<T>(dweight),
                           .dbias = pointer<T>(dbias),
                           .workspace = workspace.data<C>()},
                          nullptr);
  });
}

}  // namespace

void add_poly_norm_kernels(Backend& table) {
  table.poly_norm = forward;
  table.poly_norm_backward = backward;
}

}  // namespace norma::cuda_kernels
