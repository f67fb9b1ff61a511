// Column norms, soft cap and dropout of the device: tensors to pointers.
#include "norma/core/factory.h"
#include "norma/cuda/kernels/column_norm.h"
#include "norma/cuda/kernels/pointwise.h"
#include "norma/cuda/runtime/backend.h"
#include "norma/cuda/runtime/pointers.h"

namespace norma::cuda_kernels {

namespace {

ColumnShape shape_of(const Tensor& x) { return {x.size(0), x.size(1), x.size(2)}; }

template <class C>
Tensor workspace_for(const Tensor& x) {
  return empty({workspace_elements(shape_of(x))}, {.dtype = dtype_of<C>, .device = x.device()});
}

void statistics(const Tensor& x, const Tensor& mask, const Tensor& mean, const Tensor& variance,
                const Tensor& count) {
  visit_floating(x.dtype(), "column_statistics", [&]<class T>(TypeTag<T>) {
    using C = statistic_t<T>;
    const Tensor workspace = workspace_for<C>(x);
    column_statistics<T>(shape_of(x), x.data<T>(), pointer<bool>(mask), workspace.data<C>(),
                         pointer<C>(mean), variance.data<C>(), count.data<C>(), nullptr);
  });
}

void sums(const Tensor& x, const Tensor& mean, const Tensor& dy, const Tensor& sum_dy,
          const Tensor& sum_dy_d) {
  visit_floating(x.dtype(), "column_sums", [&]<class T>(TypeTag<T>) {
    using C = statistic_t<T>;
    const Tensor workspace = workspace_for<C>(x);
    column_sums<T>(shape_of(x), x.data<T>(), pointer<C>(mean), dy.data<T>(), workspace.data<C>(),
                   sum_dy.data<C>(), sum_dy_d.data<C>(), nullptr);
  });
}

void affine(const Tensor& x, const Tensor& mask, const Tensor& mean, const Tensor& dy,
            const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& out) {
  visit_floating(x.dtype(), "column_affine", [&]<class T>(TypeTag<T>) {
    using C = statistic_t<T>;
    column_affine<T>(shape_of(x), x.data<T>(), pointer<bool>(mask), pointer<C>(mean),
                     pointer<T>(dy), pointer<C>(a), pointer<C>(b), pointer<C>(c), out.data<T>(),
                     nullptr);
  });
}

void cap_forward(const Tensor& x, double cap, const Tensor& out) {
  visit_floating(x.dtype(), "softcap", [&]<class T>(TypeTag<T>) {
    softcap<T>(x.data<T>(), x.numel(), cap, out.data<T>(), nullptr);
  });
}

void cap_backward(const Tensor& y, double cap, const Tensor& dy, const Tensor& dx) {
  visit_floating(y.dtype(), "softcap_backward", [&]<class T>(TypeTag<T>) {
    softcap_backward<T>(y.data<T>(), y.numel(), cap, dy.data<T>(), dx.data<T>(), nullptr);
  });
}

void drop(const Tensor& x, double p, PhiloxState state, const Tensor& out) {
  visit_floating(x.dtype(), "dropout", [&]<class T>(TypeTag<T>) {
    dropout<T>(x.data<T>(), x.numel(), p, state, out.data<T>(), nullptr);
  });
}

}  // namespace

void add_column_norm_kernels(Backend& table) {
  table.column_statistics = statistics;
  table.column_sums = sums;
  table.column_affine = affine;
}

void add_pointwise_kernels(Backend& table) {
  table.softcap = cap_forward;
  table.softcap_backward = cap_backward;
  table.dropout = drop;
}

}  // namespace norma::cuda_kernels
