// Element-wise operations of the device: tensors to pointers.
#include "norma/cuda/kernels/elementwise.h"

#include "norma/cuda/kernels/elementwise_binary.h"
#include "norma/cuda/kernels/elementwise_unary.h"
#include "norma/cuda/runtime/backend.h"
#include "norma/cuda/runtime/pointers.h"
#include "norma/cuda/runtime/strided.h"
#include "norma/ops/formulas/unary.h"

namespace norma::cuda_kernels {

namespace {

void run_unary(UnaryOp op, const Tensor& x, const Tensor& out) {
  const auto run = [&]<class T>(TypeTag<T>) {
    unary<T>(op, x.data<T>(), x.numel(), out.raw_data(), nullptr);
  };
  if (takes_integers(op))
    visit_all(x.dtype(), run);
  else
    visit_floating(x.dtype(), "unary", run);
}

void run_unary_backward(UnaryOp op, const Tensor& x, const Tensor& y, const Tensor& dy,
                        const Tensor& dx) {
  check<NotImplementedError>(is_differentiable(op), "unary_backward",
                             "the operation must have a gradient; got number {} of UnaryOp",
                             static_cast<int>(op));
  visit_floating(dy.dtype(), "unary_backward", [&]<class T>(TypeTag<T>) {
    unary_backward<T>(op, x.data<T>(), y.data<T>(), dy.data<T>(), dy.numel(), dx.data<T>(),
                      nullptr);
  });
}

void run_binary(BinaryOp op, const Tensor& a, const Tensor& b, const Tensor& out) {
  const auto shape = strided_shape<3>(out.shape(), {out.strides(), a.strides(), b.strides()});
  visit_all(a.dtype(), [&]<class T>(TypeTag<T>) {
    binary<T>(op, shape, a.data<T>(), b.data<T>(), out.raw_data(), nullptr);
  });
}

void run_binary_scalar(BinaryOp op, const Tensor& x, double scalar, bool reversed,
                       const Tensor& out) {
  visit_all(x.dtype(), [&]<class T>(TypeTag<T>) {
    binary_scalar<T>(op, x.data<T>(), scalar, reversed, x.numel(), out.raw_data(), nullptr);
  });
}

void run_clamp(const Tensor& x, double min, double max, const Tensor& out) {
  visit_all(x.dtype(), [&]<class T>(TypeTag<T>) {
    clamp<T>(x.data<T>(), min, max, x.numel(), out.data<T>(), nullptr);
  });
}

void run_where(const Tensor& condition, const Tensor& a, const Tensor& b, const Tensor& out) {
  const auto shape =
      strided_shape<4>(out.shape(), {out.strides(), condition.strides(), a.strides(), b.strides()});
  visit_bits(out, [&]<class Bits>(TypeTag<Bits>) {
    where<Bits>(shape, condition.data<bool>(), bits<Bits>(a), bits<Bits>(b), bits<Bits>(out),
                nullptr);
  });
}

void run_add_scaled(const Tensor& out, const Tensor& x, double alpha) {
  visit_all(out.dtype(), [&]<class T>(TypeTag<T>) {
    add_scaled<T>(out.data<T>(), x.data<T>(), alpha, out.numel(), nullptr);
  });
}

void run_swiglu(const Tensor& gate, const Tensor& up, const Tensor& out) {
  visit_floating(out.dtype(), "swiglu", [&]<class T>(TypeTag<T>) {
    swiglu<T>(gate.data<T>(), up.data<T>(), out.numel(), out.data<T>(), nullptr);
  });
}

void run_swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dy,
                         const Tensor& dgate, const Tensor& dup) {
  visit_floating(dy.dtype(), "swiglu_backward", [&]<class T>(TypeTag<T>) {
    swiglu_backward<T>(gate.data<T>(), up.data<T>(), dy.data<T>(), dy.numel(), pointer<T>(dgate),
                       pointer<T>(dup), nullptr);
  });
}

}  // namespace

void add_elementwise_kernels(Backend& table) {
  table.unary = run_unary;
  table.unary_backward = run_unary_backward;
  table.binary = run_binary;
  table.binary_scalar = run_binary_scalar;
  table.clamp = run_clamp;
  table.where = run_where;
  table.add_scaled = run_add_scaled;
  table.swiglu = run_swiglu;
  table.swiglu_backward = run_swiglu_backward;
}

}  // namespace norma::cuda_kernels
