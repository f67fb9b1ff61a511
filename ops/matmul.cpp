#include "norma/ops/matmul.h"

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/core/required_ops.h"
#include "norma/ops/backend.h"
#include "norma/ops/elementwise.h"

namespace norma {

namespace {

/// A [batch, rows, columns] view with column stride 1 (as the gemm kernel takes it) of an operand
/// or its transpose.
struct Operand {
  Tensor matrices;
  bool transposed = false;
};

/// The stride that walks through all dimensions before the last two as one, if there is one. 0: all
/// are expanded.
std::optional<std::int64_t> batch_stride(const Shape& shape, const Shape& strides) {
  std::optional<std::int64_t> innermost;
  std::int64_t next = 0;  // the stride that the dimension before must have
  for (std::int64_t d = shape.size() - 3; d >= 0; --d) {
    if (shape[d] == 1) continue;
    if (innermost && strides[d] != next) return std::nullopt;
    if (!innermost) innermost = strides[d];
    next = strides[d] * shape[d];
  }
  return innermost.value_or(0);
}

/// Whether a matrix whose `outer` rows lie `stride` apart and hold `inner` adjacent elements suits
/// the kernel.
bool is_row_major(std::int64_t outer, std::int64_t outer_stride, std::int64_t inner,
                  std::int64_t inner_stride) {
  return (inner == 1 || inner_stride == 1) && (outer == 1 || outer_stride >= inner);
}

/// Brings x [..., rows, columns] (batch dimensions already expanded) into the kernel's form,
/// without a copy where possible.
Operand as_operand(const Tensor& x) {
  const Shape& shape = x.shape();
  const std::int64_t rank = shape.size();
  const std::int64_t rows = shape[rank - 2], columns = shape[rank - 1];
  const std::int64_t row_stride = x.strides()[rank - 2], column_stride = x.strides()[rank - 1];
  std::int64_t batch = 1;
  for (std::int64_t d = 0; d < rank - 2; ++d) batch *= shape[d];

  const std::optional<std::int64_t> step = batch_stride(shape, x.strides());
  const bool plain = is_row_major(rows, row_stride, columns, column_stride);
  const bool transposed = !plain && is_row_major(columns, column_stride, rows, row_stride);
  if (!step || (!plain && !transposed) || x.numel() == 0) {
    const Tensor packed = empty({batch, rows, columns}, {.dtype = x.dtype(), .device = x.device()});
    detail::copy(detail::make_view(packed, shape, contiguous_strides(shape), 0), x);
    return {packed, false};
  }
  if (*step == 0) batch = 1;  // one matrix for all
  if (plain)
    return {
        detail::make_view(x, {batch, rows, columns}, {*step, row_stride, 1}, x.storage_offset()),
        false};
  return {
      detail::make_view(x, {batch, columns, rows}, {*step, column_stride, 1}, x.storage_offset()),
      true};
}

/// Shapes of a product: [..., m, k] x [..., k, n], with vectors as matrices.
struct Product {
  Shape batch;
  std::int64_t m, n, k;
  Shape result;  ///< without the dimensions that vectors lack
};

Product plan(const Tensor& a, const Tensor& b) {
  const Shape& sa = a.shape();
  const Shape& sb = b.shape();
  Product p;
  p.m = a.dim() == 1 ? 1 : sa[a.dim() - 2];
  p.k = sa.back();
  p.n = b.dim() == 1 ? 1 : sb.back();
  const std::int64_t other_k = b.dim() == 1 ? sb[0] : sb[b.dim() - 2];
  check<ShapeError>(p.k == other_k, "matmul",
                    "the last dimension of input must match the {} of other; got {} and {}; "
                    "transpose one with .transpose(-2, -1)?",
                    b.dim() == 1 ? "length" : "second to last", sa, sb);
  const Shape batch_a(sa.begin(), sa.end() - std::min<std::int64_t>(a.dim(), 2));
  const Shape batch_b(sb.begin(), sb.end() - std::min<std::int64_t>(b.dim(), 2));
  p.batch = broadcast_shapes(batch_a, batch_b, "matmul");
  p.result = p.batch;
  if (a.dim() > 1) p.result.push_back(p.m);
  if (b.dim() > 1) p.result.push_back(p.n);
  return p;
}

/// x as a view [batch..., rows, columns], the batch expanded; off the tape.
Tensor expand_batch(const Tensor& x, const Shape& batch, bool as_row) {
  Shape shape = x.shape(), strides = x.strides();
  if (x.dim() == 1) {
    shape.insert(as_row ? 0 : 1, 1);
    strides.insert(as_row ? 0 : 1, 0);
  }
  Shape wide = batch, wide_strides = Shape::filled(batch.size(), 0);
  const std::int64_t missing = batch.size() - (shape.size() - 2);
  for (std::int64_t d = missing; d < batch.size(); ++d)
    if (shape[d - missing] == batch[d]) wide_strides[d] = strides[d - missing];
  for (std::int64_t d = shape.size() - 2; d < shape.size(); ++d) {
    wide.push_back(shape[d]);
    wide_strides.push_back(strides[d]);
  }
  return detail::make_view(x, wide, wide_strides, x.storage_offset());
}

/// out = alpha * a b + beta * out; out contiguous, of shape batch + [m, n].
void run_gemm(const Product& p, const Tensor& a, const Tensor& b, double alpha, double beta,
              const Tensor& out) {
  Operand left = as_operand(expand_batch(a, p.batch, true));
  const Operand right = as_operand(expand_batch(b, p.batch, false));
  std::int64_t batch = p.batch.numel(), m = p.m;
  const Tensor& rows = left.matrices;
  if (right.matrices.size(0) == 1 && !left.transposed && rows.size(0) == batch && batch > 1 &&
      (m == 1 || rows.stride(0) == m * rows.stride(1)) && rows.stride(0) >= p.k) {
    // [B, S, K] x [K, N]: the rows of all batches are the rows of one matrix.
    const std::int64_t row_stride = m == 1 ? rows.stride(0) : rows.stride(1);
    left.matrices =
        detail::make_view(rows, {1, batch * m, p.k}, {0, row_stride, 1}, rows.storage_offset());
    m *= batch;
    batch = 1;
  }
  const Tensor c = detail::make_view(out, {batch, m, p.n}, contiguous_strides({batch, m, p.n}), 0);
  backend(out).gemm(left.transposed, right.transposed, alpha, left.matrices, right.matrices, beta,
                    c);
}

void check_operands(const char* operation, const Tensor& a, const Tensor& b) {
  check<ValueError>(a.defined() && b.defined(), operation,
                    "both operands must be defined; got an undefined tensor");
  check<DTypeError>(a.dtype() == b.dtype(), operation,
                    "both operands must have one dtype; got {} and {}; convert one with .to(…)",
                    a.dtype(), b.dtype());
  check<DTypeError>(a.dtype() != bool_, operation,
                    "operands must be numbers; got bool; convert with .to(float32)");
  check<DeviceError>(
      a.device() == b.device(), operation,
      "both operands must be on one device; got {} and {}; move one with .to(device)", a.device(),
      b.device());
}

/// x^T of a matrix or batch of matrices; differentiable.
Tensor swapped(const Tensor& x) { return x.transpose(-2, -1); }

/// [..., S, K] as [rows, K]; differentiable.
Tensor folded(const Tensor& x) {
  const std::int64_t rows = Shape(x.shape().begin(), x.shape().end() - 1).numel();
  return x.reshape({rows, x.size(-1)});
}

struct Matmul : Function<Matmul> {
  static constexpr const char* name = "matmul";

  static Tensor forward(Context& ctx, const Tensor& a, const Tensor& b) {
    const Product p = plan(a, b);
    if (ctx.is_recording()) ctx.save_for_backward({a, b});
    const Tensor out = empty(p.result, {.dtype = a.dtype(), .device = a.device()});
    if (out.numel() > 0) run_gemm(p, a, b, 1.0, 0.0, out);
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad_output) {
    Tensor a = ctx.saved_tensor(0), b = ctx.saved_tensor(1);
    const Shape a_shape = a.shape(), b_shape = b.shape();
    // Vectors become matrices, and so does the gradient; the engine sums over broadcast batch
    // dimensions.
    Tensor grad = grad_output;
    if (b.dim() == 1) {
      b = b.unsqueeze(1);
      grad = grad.unsqueeze(-1);
    }
    if (a.dim() == 1) {
      a = a.unsqueeze(0);
      grad = grad.unsqueeze(-2);
    }
    Tensor grad_a, grad_b;
    if (ctx.needs_input_grad(0)) {
      grad_a = norma::matmul(grad, swapped(b));
      if (a_shape.size() == 1) grad_a = grad_a.squeeze(-2);
    }
    if (ctx.needs_input_grad(1)) {
      // One matrix for the whole batch: its gradient is one product over all rows.
      grad_b = b.dim() == 2 && a.dim() > 2 ? norma::matmul(swapped(folded(a)), folded(grad))
                                           : norma::matmul(swapped(a), grad);
      if (b_shape.size() == 1) grad_b = grad_b.squeeze(-1);
    }
    return {grad_a, grad_b};
  }
};

struct Addmm : Function<Addmm> {
  static constexpr const char* name = "addmm";

  static Tensor forward(Context& ctx, const Tensor& input, const Tensor& a, const Tensor& b,
                        double beta, double alpha) {
    const Product p = plan(a, b);
    ctx.save_for_backward({a, b});
    ctx.set("alpha", alpha);
    ctx.set("beta", beta);
    const Tensor out = empty(p.result, {.dtype = a.dtype(), .device = a.device()});
    if (beta != 0.0) detail::copy(out, input.expand(p.result));
    if (out.numel() > 0) run_gemm(p, a, b, alpha, beta, out);
    return out;
  }

  static TensorList backward(Context& ctx, const Tensor& grad) {
    const double alpha = ctx.get<double>("alpha"), beta = ctx.get<double>("beta");
    Tensor grad_input, grad_a, grad_b;
    if (ctx.needs_input_grad(0)) grad_input = beta == 1.0 ? grad : grad * beta;
    if (ctx.needs_input_grad(1)) grad_a = norma::matmul(grad, ctx.saved_tensor(1).t()) * alpha;
    if (ctx.needs_input_grad(2)) grad_b = norma::matmul(ctx.saved_tensor(0).t(), grad) * alpha;
    return {grad_input, grad_a, grad_b};
  }
};

}  // namespace

Tensor matmul(const Tensor& input, const Tensor& other) {
  check_operands("matmul", input, other);
  check<ShapeError>(
      input.dim() >= 1 && other.dim() >= 1, "matmul",
      "operands must have at least one dimension; got {} and {}; multiply by a scalar with *",
      input.shape(), other.shape());
  return Matmul::apply(input, other);
}

Tensor mm(const Tensor& input, const Tensor& mat2) {
  check_operands("mm", input, mat2);
  check<ShapeError>(input.dim() == 2 && mat2.dim() == 2 && input.size(1) == mat2.size(0), "mm",
                    "operands must be matrices [M, K] and [K, N]; got {} and {}; matmul broadcasts",
                    input.shape(), mat2.shape());
  return Matmul::apply(input, mat2);
}

Tensor bmm(const Tensor& input, const Tensor& mat2) {
  check_operands("bmm", input, mat2);
  check<ShapeError>(input.dim() == 3 && mat2.dim() == 3 && input.size(0) == mat2.size(0) &&
                        input.size(2) == mat2.size(1),
                    "bmm",
                    "operands must be [B, M, K] and [B, K, N]; got {} and {}; matmul broadcasts",
                    input.shape(), mat2.shape());
  return Matmul::apply(input, mat2);
}

Tensor addmm(const Tensor& input, const Tensor& mat1, const Tensor& mat2,
             const AddmmOptions& options) {
  check_operands("addmm", mat1, mat2);
  check_operands("addmm", input, mat1);
  check<ShapeError>(mat1.dim() == 2 && mat2.dim() == 2 && mat1.size(1) == mat2.size(0), "addmm",
                    "mat1 and mat2 must be [M, K] and [K, N]; got {} and {}", mat1.shape(),
                    mat2.shape());
  const Shape result{mat1.size(0), mat2.size(1)};
  check<ShapeError>(is_expandable_to(input.shape(), result), "addmm",
                    "input must broadcast to {}; got {}", result, input.shape());
  for (const double factor : {options.beta, options.alpha})
    detail::factor_for(input.dtype(), factor, "addmm");  // throws
  return Addmm::apply(input, mat1, mat2, options.beta, options.alpha);
}

}  // namespace norma
