#include "norma/ops/index.h"

#include <optional>

#include "norma/core/factory.h"
#include "norma/core/function.h"
#include "norma/core/required_ops.h"
#include "norma/ops/backend.h"
#include "norma/ops/cast.h"
#include "norma/ops/rows.h"
#include "norma/ops/view.h"

namespace norma {

namespace {

/// A tensor seen as [outer, length, inner] around `dim`.
struct Split3 {
  Split3(const Shape& shape, std::int64_t dim) {
    for (std::int64_t d = 0; d < shape.size(); ++d)
      (d < dim ? outer : d == dim ? length : inner) *= shape[d];
  }
  std::int64_t outer = 1;
  std::int64_t length = 1;
  std::int64_t inner = 1;
};

/// Throws IndexError for the first index outside of [0, size).
[[noreturn]] void throw_bad_index(const Tensor& index, std::int64_t size, const char* op,
                                  const char* hint) {
  const std::vector<std::int64_t> values = index.to_vector<std::int64_t>();
  const auto bad = std::find_if(values.begin(), values.end(),
                                [&](std::int64_t value) { return value < 0 || value >= size; });
  std::int64_t rest = bad - values.begin();
  Shape position = index.shape();
  for (std::int64_t d = position.size() - 1; d >= 0; --d) {
    position[d] = rest % index.shape()[d];
    rest /= index.shape()[d];
  }
  throw IndexError(op, fmt::format("every index must be in [0, {}); got {} at position {}; {}",
                                   size, *bad, position, hint));
}

/// Contiguous int64 indices on the device of `x`, each in [0, size).
Tensor checked_index(const Tensor& index, const Tensor& x, std::int64_t size, const char* op,
                     const char* hint = "check where the indices come from") {
  check<DTypeError>(is_integral(index.dtype()), op, "indices must be int64 or int32; got {}",
                    index.dtype());
  check<DeviceError>(index.device() == x.device(), op,
                     "indices and input must be on one device; got {} and {}; move one with .to()",
                     index.device(), x.device());
  const NoGradGuard no_grad;
  Tensor result = contiguous(to(index, int64));
  if (result.numel() > 0) {
    std::int64_t low = 0;
    std::int64_t high = 0;
    backend(result).index_range(result, &low, &high);
    if (low < 0 || high >= size) throw_bad_index(result, size, op, hint);
  }
  return result;
}

/// Scalars take part as vectors of one element.
Tensor at_least_1d(const Tensor& x) { return x.dim() == 0 ? unsqueeze(x, 0) : x; }

/// The front of `x` where it is larger than `shape`; the same rank.
Tensor narrow_to(Tensor x, const Shape& shape, std::int64_t except_dim) {
  for (std::int64_t d = 0; d < shape.size(); ++d)
    if (d != except_dim && x.shape()[d] != shape[d]) x = narrow(x, d, 0, shape[d]);
  return x;
}

// -- gather and scatter: `index` validated, sizes outside of `dim` equal --------------------------

struct Gather : Function<Gather> {
  static constexpr const char* name = "gather";
  static Tensor forward(Context& ctx, const Tensor& x, std::int64_t dim, const Tensor& index) {
    ctx.save_for_backward({index});
    ctx.set("dim", dim);
    ctx.set("shape", x.shape());
    Tensor out = empty(index.shape(), {.dtype = x.dtype(), .device = x.device()});
    const Split3 split(x.shape(), dim);
    if (out.numel() > 0) backend(x).gather(contiguous(x), index, split.outer, split.inner, out);
    return out;
  }
  static TensorList backward(Context& ctx, const Tensor& grad);
};

/// A copy of `base` with source written, or added, at index.
Tensor run_scatter(const Tensor& base, std::int64_t dim, const Tensor& index, const Tensor& source,
                   bool add) {
  // Sums of 16-bit numbers are collected in float32, and rounded once.
  Tensor out = clone(add ? detail::in_accumulate_type(base) : base);
  const Split3 split(base.shape(), dim);
  if (index.numel() > 0)
    backend(base).scatter(contiguous(to(source, out.dtype())), index, split.outer, split.inner, add,
                          out);
  return to(out, base.dtype());
}

struct ScatterAdd : Function<ScatterAdd> {
  static constexpr const char* name = "scatter_add";
  static Tensor forward(Context& ctx, const Tensor& base, std::int64_t dim, const Tensor& index,
                        const Tensor& source) {
    ctx.save_for_backward({index});
    ctx.set("dim", dim);
    return run_scatter(base, dim, index, source, true);
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    Tensor to_source;
    if (ctx.needs_input_grad(2))
      to_source = Gather::apply(grad, ctx.get<std::int64_t>("dim"), ctx.saved_tensor(0));
    return {grad, Tensor(), to_source};
  }
};

struct Scatter : Function<Scatter> {
  static constexpr const char* name = "scatter";
  static Tensor forward(Context& ctx, const Tensor& base, std::int64_t dim, const Tensor& index,
                        const Tensor& source) {
    ctx.save_for_backward({index});
    ctx.set("dim", dim);
    return run_scatter(base, dim, index, source, false);
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    const std::int64_t dim = ctx.get<std::int64_t>("dim");
    const Tensor index = ctx.saved_tensor(0);
    Tensor to_base;
    Tensor to_source;
    if (ctx.needs_input_grad(0)) {
      const Tensor zero = zeros(index.shape(), {.dtype = grad.dtype(), .device = grad.device()});
      to_base = Scatter::apply(grad, dim, index, zero);
    }
    if (ctx.needs_input_grad(2)) to_source = Gather::apply(grad, dim, index);
    return {to_base, Tensor(), to_source};
  }
};

TensorList Gather::backward(Context& ctx, const Tensor& grad) {
  const Tensor zero =
      zeros(ctx.get<Shape>("shape"), {.dtype = grad.dtype(), .device = grad.device()});
  return {ScatterAdd::apply(zero, ctx.get<std::int64_t>("dim"), ctx.saved_tensor(0), grad),
          Tensor()};
}

// -- rows of a table ------------------------------------------------------------------------------

/// out[n] = table[index[n]]; the derivative of TableGradient.
struct TableRows : Function<TableRows> {
  static constexpr const char* name = "embedding";
  static Tensor forward(Context& ctx, const Tensor& table, const Tensor& index,
                        std::int64_t padding_row);
  static TensorList backward(Context& ctx, const Tensor& grad);
};

/// Sums rows into a table of zeros; the gradient of TableRows.
struct TableGradient : Function<TableGradient> {
  static constexpr const char* name = "embedding_backward";
  static Tensor forward(Context& ctx, const Tensor& rows, const Tensor& index,
                        std::int64_t padding_row, std::int64_t table_rows) {
    ctx.save_for_backward({index});
    ctx.set("padding_row", padding_row);
    Tensor table =
        empty({table_rows, rows.size(1)}, {.dtype = rows.dtype(), .device = rows.device()});
    if (table.numel() > 0)
      backend(rows).embedding_backward(contiguous(rows), index, padding_row, table);
    return table;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    const Tensor index = ctx.saved_tensor(0);
    const std::int64_t padding_row = ctx.get<std::int64_t>("padding_row");
    Tensor table = grad;
    if (padding_row >= 0) {  // rows that the sum leaves out have no derivative
      const Shape size{1, grad.size(1)};
      const Tensor zero = zeros(size, {.dtype = grad.dtype(), .device = grad.device()});
      const Tensor row =
          full(size, static_cast<double>(padding_row), {.dtype = int64, .device = grad.device()});
      table = Scatter::apply(grad, std::int64_t{0}, row, zero);
    }
    return {TableRows::apply(table, index, padding_row), Tensor()};
  }
};

Tensor TableRows::forward(Context& ctx, const Tensor& table, const Tensor& index,
                          std::int64_t padding_row) {
  ctx.save_for_backward({index});
  ctx.set("padding_row", padding_row);
  ctx.set("table_rows", table.size(0));
  Tensor out =
      empty({index.numel(), table.size(1)}, {.dtype = table.dtype(), .device = table.device()});
  if (out.numel() > 0) backend(table).embedding(contiguous(table), index, out);
  return out;
}

TensorList TableRows::backward(Context& ctx, const Tensor& grad) {
  return {TableGradient::apply(grad, ctx.saved_tensor(0), ctx.get<std::int64_t>("padding_row"),
                               ctx.get<std::int64_t>("table_rows")),
          Tensor()};
}

// -- joining --------------------------------------------------------------------------------------

struct Cat : Function<Cat> {
  static constexpr const char* name = "cat";
  static Tensor forward(Context& ctx, const TensorList& tensors, std::int64_t dim, DType dtype) {
    std::vector<std::int64_t> sizes;
    std::int64_t total = 0;
    for (const Tensor& tensor : tensors) {
      sizes.push_back(tensor.shape()[dim]);
      total += sizes.back();
    }
    Shape shape = tensors[0].shape();
    shape[dim] = total;
    Tensor out = empty(shape, {.dtype = dtype, .device = tensors[0].device()});
    std::int64_t start = 0;
    for (const Tensor& tensor : tensors) {
      detail::copy(narrow(out, dim, start, tensor.shape()[dim]), tensor);
      start += tensor.shape()[dim];
    }
    ctx.set("dim", dim);
    ctx.set("sizes", sizes);
    return out;
  }
  static TensorList backward(Context& ctx, const Tensor& grad) {
    const std::int64_t dim = ctx.get<std::int64_t>("dim");
    const auto sizes = ctx.get<std::vector<std::int64_t>>("sizes");
    TensorList grads(sizes.size());
    std::int64_t start = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (ctx.needs_input_grad(i)) grads[i] = narrow(grad, dim, start, sizes[i]);
      start += sizes[i];
    }
    return grads;  // the engine converts to each input's dtype
  }
};

/// Checks shared by gather and the scatters.
void check_index_shape(const Tensor& x, std::int64_t dim, const Tensor& index, const char* op,
                       const char* what) {
  check<ShapeError>(index.dim() == x.dim(), op,
                    "index must have the {} dimensions of {}; got shape {}", x.dim(), what,
                    index.shape());
  for (std::int64_t d = 0; d < x.dim(); ++d)
    check<ShapeError>(d == dim || index.shape()[d] <= x.shape()[d], op,
                      "index must be no larger than {} outside of dim {}; got shapes {} and {}",
                      what, dim, index.shape(), x.shape());
}

template <class F>
Tensor scatter_with(const Tensor& input, std::int64_t dim, const Tensor& index, const Tensor& src,
                    const char* op) {
  const std::int64_t d = normalize_dim(dim, input.dim(), op);
  check<DTypeError>(src.dtype() == input.dtype(), op,
                    "src must have the dtype of input ({}); got {}; convert with .to()",
                    input.dtype(), src.dtype());
  check<DeviceError>(src.device() == input.device(), op,
                     "src and input must be on one device; got {} and {}", src.device(),
                     input.device());
  const Tensor base = at_least_1d(input);
  const Tensor at = at_least_1d(index);
  const Tensor source = at_least_1d(src);
  check_index_shape(base, d, at, op, "input");
  check_index_shape(source, -1, at, op, "src");
  const Tensor checked = checked_index(at, base, base.shape()[d], op);
  const Tensor placed = narrow_to(source, at.shape(), -1);
  // The kernel needs equal sizes outside of dim: the rest of a larger input stands aside.
  Tensor front = narrow_to(base, at.shape(), d);
  if (front.shape() == base.shape())
    return reshape(F::apply(base, d, checked, placed), input.shape());
  Shape rest = base.shape();
  Tensor result = F::apply(front, d, checked, placed);
  for (std::int64_t k = base.dim() - 1; k >= 0; --k) {
    if (k == d || rest[k] == at.shape()[k]) continue;
    // What lies behind `front` in dimension k, within the front of the dimensions before k.
    Tensor behind = base;
    for (std::int64_t j = 0; j < k; ++j)
      if (j != d) behind = narrow(behind, j, 0, at.shape()[j]);
    behind = narrow(behind, k, at.shape()[k], rest[k] - at.shape()[k]);
    result = cat({result, behind}, k);
  }
  return result;
}

}  // namespace

Tensor gather(const Tensor& input, std::int64_t dim, const Tensor& index) {
  const std::int64_t d = normalize_dim(dim, input.dim(), "gather");
  const Tensor x = at_least_1d(input);
  const Tensor at = at_least_1d(index);
  check_index_shape(x, d, at, "gather", "input");
  const Tensor checked = checked_index(at, x, x.shape()[d], "gather");
  return reshape(Gather::apply(narrow_to(x, at.shape(), d), d, checked), index.shape());
}

Tensor scatter(const Tensor& input, std::int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_with<Scatter>(input, dim, index, src, "scatter");
}

Tensor scatter_add(const Tensor& input, std::int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_with<ScatterAdd>(input, dim, index, src, "scatter_add");
}

Tensor index_select(const Tensor& input, std::int64_t dim, const Tensor& index) {
  const std::int64_t d = normalize_dim(dim, input.dim(), "index_select");
  check<ShapeError>(index.dim() <= 1, "index_select", "index must be a vector; got shape {}",
                    index.shape());
  const Tensor x = at_least_1d(input);
  const Tensor checked = checked_index(at_least_1d(index), x, x.shape()[d], "index_select");
  // Dimension d in front, all others as the columns of a table.
  const Tensor moved = transpose(x, 0, d);
  const std::int64_t columns = x.numel() == 0 ? 0 : x.numel() / x.shape()[d];
  Shape shape = moved.shape();
  shape[0] = checked.numel();
  if (x.numel() == 0) return transpose(reshape(narrow(moved, 0, 0, 0), shape), 0, d);
  const Tensor rows =
      TableRows::apply(reshape(moved, {x.shape()[d], columns}), checked, std::int64_t{-1});
  return transpose(reshape(rows, shape), 0, d);
}

Tensor cat(const TensorList& tensors, std::int64_t dim) {
  check<ValueError>(!tensors.empty(), "cat", "needs at least one tensor; got none");
  const Tensor& first = tensors[0];
  check<ShapeError>(first.dim() > 0, "cat",
                    "tensors must have a dimension to join; got a scalar; use stack");
  const std::int64_t d = normalize_dim(dim, first.dim(), "cat");
  DType dtype = first.dtype();
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    const Tensor& other = tensors[i];
    Shape expected = first.shape();
    if (other.dim() == first.dim()) expected[d] = other.shape()[d];
    check<ShapeError>(
        other.shape() == expected, "cat",
        "all sizes but that of dim {} must agree; got {} (tensor 0) and {} (tensor {})", d,
        first.shape(), other.shape(), i);
    check<DeviceError>(other.device() == first.device(), "cat",
                       "all tensors must be on one device; got {} (tensor 0) and {} (tensor {})",
                       first.device(), other.device(), i);
    dtype = promote_types(dtype, other.dtype());
  }
  return Cat::apply(tensors, d, dtype);
}

Tensor stack(const TensorList& tensors, std::int64_t dim) {
  check<ValueError>(!tensors.empty(), "stack", "needs at least one tensor; got none");
  const std::int64_t d = normalize_dim(dim, tensors[0].dim() + 1, "stack");
  TensorList slices;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    check<ShapeError>(tensors[i].shape() == tensors[0].shape(), "stack",
                      "all tensors must have one shape; got {} (tensor 0) and {} (tensor {})",
                      tensors[0].shape(), tensors[i].shape(), i);
    slices.push_back(unsqueeze(tensors[i], d));
  }
  return cat(slices, d);
}

Tensor one_hot(const Tensor& index, std::int64_t num_classes) {
  check<DTypeError>(is_integral(index.dtype()), "one_hot", "indices must be int64 or int32; got {}",
                    index.dtype());
  check<ValueError>(
      num_classes >= -1 && (num_classes != -1 || index.numel() > 0) && num_classes != 0, "one_hot",
      "num_classes must be positive, or -1 with at least one index; got {}", num_classes);
  const NoGradGuard no_grad;
  std::int64_t classes = num_classes;
  if (classes == -1) {
    std::int64_t low = 0;
    const Tensor packed = contiguous(to(index, int64));
    backend(packed).index_range(packed, &low, &classes);
    ++classes;
  }
  const Tensor checked = checked_index(index, index, classes, "one_hot", "raise num_classes");
  const Tensor at = unsqueeze(checked, -1);
  Shape shape = index.shape();
  shape.push_back(classes);
  const Tensor zero = zeros(shape, {.dtype = int64, .device = index.device()});
  return Scatter::apply(zero, zero.dim() - 1, at,
                        ones(at.shape(), {.dtype = int64, .device = index.device()}));
}

Tensor embedding(const Tensor& input, const Tensor& weight,
                 std::optional<std::int64_t> padding_idx) {
  check<ShapeError>(weight.dim() == 2, "embedding",
                    "weight must be [num_embeddings, embedding_dim]; got shape {}", weight.shape());
  const std::int64_t rows = weight.shape()[0];
  std::int64_t padding_row = -1;
  if (padding_idx) {
    check<IndexError>(*padding_idx >= -rows && *padding_idx < rows, "embedding",
                      "padding_idx must be in [{}, {}]; got {}", -rows, rows - 1, *padding_idx);
    padding_row = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
  }
  const Tensor index = checked_index(input, weight, rows, "embedding",
                                     "the vocabulary and num_embeddings must agree");
  Shape shape = input.shape();
  shape.push_back(weight.shape()[1]);
  return reshape(TableRows::apply(weight, reshape(index, {index.numel()}), padding_row), shape);
}

}  // namespace norma
