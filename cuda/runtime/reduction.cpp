#include "norma/cuda/kernels/reduction.h"

#include "norma/core/factory.h"
#include "norma/cuda/runtime/backend.h"
#include "norma/cuda/runtime/driver.h"

namespace norma::cuda_kernels {

namespace {

Tensor workspace_for(const ReduceShape& shape, DType dtype, const Tensor& x) {
  return empty({workspace_elements(shape)}, {.dtype = dtype, .device = x.device()});
}

void run_reduce(ReduceOp op, const Tensor& x, std::int64_t outer, std::int64_t reduced,
                std::int64_t inner, const Tensor& out) {
  const ReduceShape shape{outer, reduced, inner};
  visit_all(x.dtype(), [&]<class T>(TypeTag<T>) {
    using C = accumulate_t<T>;
    if (op == ReduceOp::any || op == ReduceOp::all) {
      const Tensor workspace = workspace_for(shape, bool_, x);
      return reduce_logical<T>(op, shape, x.data<T>(), workspace.data<bool>(), out.data<bool>(),
                               nullptr);
    }
    const Tensor workspace = workspace_for(shape, dtype_of<C>, x);
    if (out.dtype() == dtype_of<T>)
      reduce<T, C, T>(op, shape, x.data<T>(), workspace.data<C>(), out.data<T>(), nullptr);
    else
      reduce<T, C, C>(op, shape, x.data<T>(), workspace.data<C>(), out.data<C>(), nullptr);
  });
}

bool run_all_finite(const Tensor& x) {
  if (!is_floating_point(x.dtype())) return true;
  const ReduceShape shape{1, x.numel(), 1};
  const Tensor out = empty({1}, {.dtype = bool_, .device = x.device()});
  const Tensor workspace = workspace_for(shape, bool_, x);
  visit_floating(x.dtype(), "all_finite", [&]<class T>(TypeTag<T>) {
    reduce_finite<T>(shape, x.data<T>(), workspace.data<bool>(), out.data<bool>(), nullptr);
  });
  bool finite = false;
  driver::copy_to_host(&finite, out.raw_data(), sizeof(finite));
  return finite;
}

void run_argreduce(bool largest, const Tensor& x, std::int64_t outer, std::int64_t reduced,
                   std::int64_t inner, const Tensor& out) {
  visit_all(x.dtype(), [&]<class T>(TypeTag<T>) {
    argreduce<T>(largest, {outer, reduced, inner}, x.data<T>(), out.data<std::int64_t>(), nullptr);
  });
}

void run_cumsum(const Tensor& x, std::int64_t outer, std::int64_t length, std::int64_t inner,
                bool reverse, const Tensor& out) {
  visit_all(x.dtype(), [&]<class T>(TypeTag<T>) {
    using Out = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;
    cumsum<T, Out>({outer, length, inner}, reverse, x.data<T>(), out.data<Out>(), nullptr);
  });
}

}  // namespace

void add_reduction_kernels(Backend& table) {
  table.reduce = run_reduce;
  table.all_finite = run_all_finite;
  table.argreduce = run_argreduce;
  table.cumsum = run_cumsum;
}

}  // namespace norma::cuda_kernels
