// Matrix products and the linear layer on the device: by the library where there is one, else by
// the kernel of this project.
#include "norma/core/factory.h"
#include "norma/cuda/kernels/elementwise_unary.h"
#include "norma/cuda/kernels/gemm.h"
#include "norma/cuda/runtime/backend.h"
#include "norma/cuda/runtime/matmul_library.h"
#include "norma/cuda/runtime/pointers.h"

namespace norma::cuda_kernels {

namespace {

/// A row-major operand [batch, rows, columns].
driver::MatmulOperand operand(const Tensor& x, bool transposed) {
  // A single row has no next one; libraries still want a sane distance.
  return {.data = x.raw_data(),
          .ld = x.size(1) > 1 ? x.stride(1) : std::max<std::int64_t>(x.size(2), 1),
          .batch = x.size(0) > 1 ? x.stride(0) : 0,
          .transposed = transposed};
}

GemmFactor factor(const driver::MatmulOperand& x, bool first) {
  const bool along_rows = x.transposed != first;  // whether the product's side is that of the rows
  return {.outer = along_rows ? x.ld : 1, .depth = along_rows ? 1 : x.ld, .batch = x.batch};
}

/// c = alpha op(a) op(b) + beta c + bias.
void multiply(bool transpose_a, bool transpose_b, double alpha, const Tensor& a, const Tensor& b,
              double beta, const Tensor& bias, const Tensor& c) {
  check<DTypeError>(c.dtype() != bool_, "gemm", "needs numbers; got bool; convert with .to(int64)");
  if (c.numel() == 0) return;
  const driver::MatmulOperand to = operand(c, false);
  const driver::MatmulCall call{.dtype = c.dtype(),
                                .batch = c.size(0),
                                .m = c.size(1),
                                .n = c.size(2),
                                .k = transpose_a ? a.size(1) : a.size(2),
                                .alpha = alpha,
                                .beta = beta,
                                .a = operand(a, transpose_a),
                                .b = operand(b, transpose_b),
                                .bias = bias.defined() ? bias.raw_data() : nullptr,
                                .c = c.raw_data(),
                                .c_ld = to.ld,
                                .c_batch = to.batch};
  if (call.k > 0 && driver::library_matmul(call, nullptr)) return;
  const GemmShape shape{.batch = call.batch,
                        .m = call.m,
                        .n = call.n,
                        .k = call.k,
                        .a = factor(call.a, true),
                        .b = factor(call.b, false),
                        .c_row = call.c_ld,
                        .c_batch = call.c_batch};
  const auto run = [&]<class T>(TypeTag<T>) {
    gemm<T>(shape, alpha, a.data<T>(), b.data<T>(), beta, pointer<T>(bias), c.data<T>(), nullptr);
  };
  switch (c.dtype()) {
    case DType::int32:
      return run(TypeTag<std::int32_t>{});
    case DType::int64:
      return run(TypeTag<std::int64_t>{});
    default:
      return visit_floating(c.dtype(), "gemm", run);
  }
}

void run_gemm(bool transpose_a, bool transpose_b, double alpha, const Tensor& a, const Tensor& b,
              double beta, const Tensor& c) {
  multiply(transpose_a, transpose_b, alpha, a, b, beta, {}, c);
}

UnaryOp function_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return UnaryOp::relu;
    case Activation::gelu:
      return UnaryOp::gelu;
    case Activation::gelu_tanh:
      return UnaryOp::gelu_tanh;
    default:
      return UnaryOp::silu;
  }
}

/// The matrix as a batch of one.
Tensor batched(const Tensor& matrix) { return matrix.unsqueeze(0); }

void run_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation,
                const Tensor& pre, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor& product = pre.defined() ? pre : out;
  multiply(false, true, 1.0, batched(x), batched(weight), 0.0, bias, batched(product));
  if (activation == Activation::none) return;
  visit_floating(x.dtype(), "linear", [&]<class T>(TypeTag<T>) {
    unary<T>(function_of(activation), product.data<T>(), product.numel(), out.raw_data(), nullptr);
  });
}

void run_linear_backward(const Tensor& x, const Tensor& weight, const Tensor& pre,
                         Activation activation, const Tensor& dy, const Tensor& dx,
                         const Tensor& dweight, const Tensor& dbias) {
  Tensor g = dy;
  if (activation != Activation::none) {
    g = empty(dy.shape(), {.dtype = dy.dtype(), .device = dy.device()});
    visit_floating(x.dtype(), "linear_backward", [&]<class T>(TypeTag<T>) {
      // ReLU alone looks at its result, and only whether that is positive: as pre is.
      unary_backward<T>(function_of(activation), pre.data<T>(), pre.data<T>(), dy.data<T>(),
                        dy.numel(), g.data<T>(), nullptr);
    });
  }
  if (dbias.defined()) backend(dy).reduce(ReduceOp::sum, g, 1, g.size(0), g.size(1), dbias);
  if (dx.defined()) multiply(false, false, 1.0, batched(g), batched(weight), 0.0, {}, batched(dx));
  if (dweight.defined())
    multiply(true, false, 1.0, batched(g), batched(x), 0.0, {}, batched(dweight));
}

}  // namespace

void add_matmul_kernels(Backend& table) {
  table.gemm = run_gemm;
  table.linear = run_linear;
  table.linear_backward = run_linear_backward;
}

}  // namespace norma::cuda_kernels
